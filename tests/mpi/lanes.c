// Threads on communicators of different lanes (docs/lanes.md).
//   liveness [hangs]   two receives that complete only if a thread that waits for one makes progress for the other; `hangs`: shows that
//                      they do not, which is so where each thread polls its own lane alone
//   gets [hangs]       the same with windows whose targets answer by messages: two flushes of one rank, two threads of the other
//   fuzz SEED ROUNDS   threads that create communicators, send, receive by names and wildcards, probe, cancel and free at once, each
//                      message compared with what a sequential program would receive
//   sleep              threads that sleep are woken by what any of their lanes brings
//   hints              which lanes communicators get with WEFT_LANES=hints
//   levels             ranks of different thread levels
//   tags               one communicator with several lanes, among which tags or ranks choose, as hints say
#include <pthread.h>
#include <stdatomic.h>
#include <weft.h>

#include "check.h"

enum { threads = 4 };
static MPI_Comm comms[threads];

struct job {
    int me;
    void (*run)(int me);
};
static void* in_thread(void* arg) {
    struct job* job = arg;
    job->run(job->me);
    return NULL;
}
static void all(int n, void (*run)(int me)) {
    pthread_t thread[threads];
    struct job job[threads];
    for (int i = 0; i < n; i++) {
        job[i] = (struct job){i, run};
        CHECK(pthread_create(&thread[i], NULL, in_thread, &job[i]) == 0, "no thread");
    }
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
}

static int lane_of(MPI_Comm comm) {
    MPI_Info told;
    char value[16] = "";
    int there, room = sizeof value;
    MPI_Comm_get_info(comm, &told);
    MPI_Info_get_string(told, "weft_lane", &room, value, &there);
    MPI_Info_free(&told);
    CHECK(there, "no lane is told");
    return atoi(value);
}
// Ends the program where communicators have no lanes of their own: where ranks reach each other by sockets.
static void need_lanes(int have) {
    if (have) return;
    MPI_Finalize();
    exit(77);
}

// ---------------------------------------------------------------------------------------------------------- liveness

static atomic_int posted, second_is_there, hung;
static int hang_expected;

// The second of the threads tells rank 0 that both have begun. Then thread 0 stays outside MPI until thread 1 is done, or for too long.
static void begun(int me) {
    if (atomic_fetch_add(&posted, 1) == 1) MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD);
    if (me == 1) return;
    const double until = seconds() + (hang_expected ? 2 : 60);
    while (!atomic_load(&second_is_there) && seconds() < until) sleep_ms(1);
    atomic_store(&hung, !atomic_load(&second_is_there));
}
static void check_hung(void) { CHECK(atomic_load(&hung) == hang_expected, hang_expected ? "it did not hang" : "it hangs"); }

// Thread 0 leaves MPI with its receive pending; thread 1's ends only after the sender's first synchronous send has.
static void receiver(int me) {
    int value = -1;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 0, 1, comms[me], &request);
    begun(me);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(value == 10 + me, "%d from communicator %d", value, me);
    if (me == 1) atomic_store(&second_is_there, 1);
}

static void liveness(void) {
    if (hang_expected) need_lanes(lane_of(comms[0]) != lane_of(comms[1]));
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) {
            const int value = 10 + i;
            MPI_Ssend(&value, 1, MPI_INT, 1, 1, comms[i]);
        }
    } else if (rank == 1) {
        all(2, receiver);
        check_hung();
    }
}

static MPI_Win wins[2];

// Thread 0 leaves MPI, and rank 0 cannot end its flush of the first window without it; thread 1's flush needs rank 0.
static void getter(int me) {
    int value = -1;
    MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, wins[me]);
    begun(me);
    MPI_Win_flush(0, wins[me]);
    CHECK(value == 20 + me, "%d in window %d", value, me);
    if (me == 1) atomic_store(&second_is_there, 1);
}

static void gets(void) {
    int *part[2], value[2] = {-1, -1};
    if (hang_expected) need_lanes(lane_of(comms[0]) != lane_of(comms[1]));   // then windows have lanes of their own, too
    for (int i = 0; i < 2; i++) {
        MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comms[i], &part[i], &wins[i]);
        *part[i] = 20 + 10 * rank + i;
        MPI_Barrier(comms[i]);
        MPI_Win_lock_all(0, wins[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);   // rank 0 has all locks before the threads begin
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) MPI_Get(&value[i], 1, MPI_INT, 1, 0, 1, MPI_INT, wins[i]);
        for (int i = 0; i < 2; i++) MPI_Win_flush(1, wins[i]);
        for (int i = 0; i < 2; i++) CHECK(value[i] == 30 + i, "%d in window %d", value[i], i);
    } else if (rank == 1) {
        all(2, getter);
        check_hung();
    }
    for (int i = 0; i < 2; i++) {
        MPI_Win_unlock_all(wins[i]);
        MPI_Win_free(&wins[i]);
    }
}

// -------------------------------------------------------------------------------------------------------------- fuzz

enum { most_ranks = 8, messages = 24, longest = 80000, unsent_tag = 999 };
static int seed, rounds;

struct message {
    int tag, bytes, taken;
};
// What `from` sends to `to` in a round, in order: both know it.
static void messages_of(int thread, int round, int from, int to, struct message* out) {
    static const int sizes[] = {0, 8, 48, 49, 700, 5000, 33000, longest};
    uint64_t state = (uint64_t)seed << 40 ^ (uint64_t)thread << 32 ^ (uint64_t)round << 16 ^ (uint64_t)from << 8 ^ (uint64_t)to;
    for (int i = 0; i < messages; i++) out[i] = (struct message){(int)below(&state, 3), sizes[below(&state, i % 8 ? 6 : 8)], 0};
}
static uint32_t id_of(int thread, int round, int from, int i) { return (uint32_t)(thread * 7919 + round * 104729 + from * 31 + i * 3); }

// The message that a receive from that source with that tag must get: the first of those that match.
static int first_of(const struct message* queue, int tag) {
    for (int i = 0; i < messages; i++)
        if (!queue[i].taken && (tag == MPI_ANY_TAG || queue[i].tag == tag)) return i;
    return -1;
}

static void check_received(struct message (*queues)[messages], const MPI_Status* s, int tag, const char* data, int thread, int round) {
    int bytes;
    MPI_Get_count(s, MPI_BYTE, &bytes);
    const int i = first_of(queues[s->MPI_SOURCE], tag);
    CHECK(i >= 0, "nothing is left of rank %d with tag %d", s->MPI_SOURCE, tag);
    struct message* m = &queues[s->MPI_SOURCE][i];
    CHECK(m->tag == s->MPI_TAG && m->bytes == bytes, "tag %d, %d bytes, expected %d, %d", s->MPI_TAG, bytes, m->tag, m->bytes);
    CHECK(differs(data, (size_t)bytes, id_of(thread, round, s->MPI_SOURCE, i)) < 0, "message %d of rank %d is wrong", i, s->MPI_SOURCE);
    m->taken = 1;
}

static void cancel_one(MPI_Comm comm, uint64_t* state) {
    char nothing;
    int cancelled = 0;
    MPI_Request request;
    MPI_Status s;
    MPI_Irecv(&nothing, 1, MPI_BYTE, below(state, 2) ? MPI_ANY_SOURCE : (rank + 1) % size, unsent_tag, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &s);
    MPI_Test_cancelled(&s, &cancelled);
    CHECK(cancelled, "a receive of what nobody sends was not cancelled");
}

// Receives one message in one of several ways.
static void receive_one(MPI_Comm comm, struct message (*queues)[messages], char* data, uint64_t* state, int thread, int round) {
    int source = (int)below(state, (uint32_t)size), i;
    while ((i = first_of(queues[source], MPI_ANY_TAG)) < 0) source = (source + 1) % size;
    const int any_source = below(state, 3) == 0, any_tag = below(state, 3) == 0;
    int tag = any_tag || any_source ? MPI_ANY_TAG : queues[source][i].tag, there = 0;
    const int from = any_source ? MPI_ANY_SOURCE : source;
    MPI_Status s;
    MPI_Message message;
    MPI_Request request;
    switch (below(state, 6)) {
    case 0:
        MPI_Recv(data, longest, MPI_BYTE, from, tag, comm, &s);
        break;
    case 1:
        MPI_Irecv(data, longest, MPI_BYTE, from, tag, comm, &request);
        if (below(state, 4) == 0) cancel_one(comm, state);
        MPI_Wait(&request, &s);
        break;
    case 2:
        MPI_Irecv(data, longest, MPI_BYTE, from, tag, comm, &request);
        while (!there) MPI_Test(&request, &there, &s);
        break;
    case 3:
        MPI_Probe(from, tag, comm, &s);
        tag = tag == MPI_ANY_TAG ? MPI_ANY_TAG : s.MPI_TAG;
        MPI_Recv(data, longest, MPI_BYTE, s.MPI_SOURCE, tag, comm, &s);
        break;
    case 4:
        while (!there) MPI_Improbe(from, tag, comm, &there, &message, &s);
        MPI_Mrecv(data, longest, MPI_BYTE, &message, &s);
        break;
    default:
        MPI_Mprobe(from, tag, comm, &message, &s);
        MPI_Mrecv(data, longest, MPI_BYTE, &message, &s);
    }
    check_received(queues, &s, tag, data, thread, round);
}

static void exchange(MPI_Comm comm, int thread, int round, uint64_t* state) {
    static _Thread_local struct message queues[most_ranks][messages];
    MPI_Request requests[most_ranks * messages];
    char* buffers[most_ranks * messages];
    char* data = malloc(longest);
    int n = 0;
    for (int to = 0; to < size; to++) {
        struct message mine[messages];
        messages_of(thread, round, rank, to, mine);
        messages_of(thread, round, to, rank, queues[to]);
        for (int i = 0; i < messages; i++, n++) {
            buffers[n] = malloc((size_t)mine[i].bytes + 1);
            fill(buffers[n], (size_t)mine[i].bytes, id_of(thread, round, rank, i));
            (below(state, 5) == 0 ? MPI_Issend : MPI_Isend)(buffers[n], mine[i].bytes, MPI_BYTE, to, mine[i].tag, comm, &requests[n]);
        }
    }
    for (int i = 0; i < n; i++) receive_one(comm, queues, data, state, thread, round);
    if (below(state, 2)) MPI_Comm_free(&comm);   // while sends are pending
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    for (int i = 0; i < n; i++) free(buffers[i]);
    free(data);
}

static void fuzz(int me) {
    uint64_t state = (uint64_t)(seed * 1000 + me * 10 + rank);
    for (int round = 0; round < rounds; round++) {
        MPI_Comm comm;
        if (round % 2) MPI_Comm_dup(comms[me], &comm);
        else MPI_Comm_split(comms[me], 0, size - rank, &comm);
        if (round % 2 == 0) {   // the same ranks, the other way round
            MPI_Comm again;
            MPI_Comm_split(comm, 0, size - rank, &again);
            MPI_Comm_free(&comm);
            MPI_Comm_split(again, 0, rank, &comm);
            MPI_Comm_free(&again);
        }
        int in_comm;
        MPI_Comm_rank(comm, &in_comm);
        CHECK(in_comm == rank, "rank %d in the new communicator", in_comm);
        exchange(comm, me, round, &state);
    }
}

// ------------------------------------------------------------------------------------------------------------- sleep

enum { sleeps = 20 };

// Rank 0 sends after each delay that is long enough to let the others sleep; it takes turns through the communicators.
static void sender(void) {
    for (int i = 0; i < sleeps; i++) {
        sleep_ms(15);
        for (int to = 1; to < size; to++) MPI_Send(&i, 1, MPI_INT, to, 4, comms[i % threads]);
    }
}
static void await_any(void) {
    int values[threads], next[threads];
    MPI_Request requests[threads];
    for (int i = 0; i < threads; i++) next[i] = i;
    for (int i = 0; i < threads; i++) MPI_Irecv(&values[i], 1, MPI_INT, 0, 4, comms[i], &requests[i]);
    for (int i = 0; i < sleeps; i++) {
        int which;
        MPI_Waitany(threads, requests, &which, MPI_STATUS_IGNORE);
        CHECK(values[which] == next[which], "%d from %d, not %d", values[which], which, next[which]);
        next[which] += threads;   // a late receiver may find several, in any order of communicators
        if (next[which] < sleeps) MPI_Irecv(&values[which], 1, MPI_INT, 0, 4, comms[which], &requests[which]);
    }
}
// The same where each thread waits for its own communicator.
static void await_own(int me) {
    for (int i = me; i < sleeps; i += threads) {
        int value;
        MPI_Recv(&value, 1, MPI_INT, 0, 4, comms[me], MPI_STATUS_IGNORE);
        CHECK(value == i, "%d, not %d", value, i);
    }
}
// One thread completes what another one sleeps for.
static atomic_int turn;
static void wake_each_other(int me) {
    for (int i = 0; i < sleeps; i++) {
        int value;
        if (me == 0) {
            sleep_ms(12);
            MPI_Send(&i, 1, MPI_INT, rank, 5, comms[1]);
        } else if (me == 1) {
            MPI_Recv(&value, 1, MPI_INT, rank, 5, comms[1], MPI_STATUS_IGNORE);
            CHECK(value == i, "%d, not %d", value, i);
            atomic_fetch_add(&turn, 1);
        }
    }
}

static void sleepers(void) {
    for (int own = 0; own < 2; own++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) sender();
        else if (own) all(threads, await_own);
        else await_any();
    }
    all(2, wake_each_other);
    CHECK(atomic_load(&turn) == sleeps, "%d", atomic_load(&turn));
}

// ------------------------------------------------------------------------------------------------------------- levels

static void ring(MPI_Comm comm, int bytes) {
    char* out = malloc((size_t)bytes);
    char* in = malloc((size_t)bytes);
    for (int i = 0; i < 20; i++) {
        fill(out, (size_t)bytes, (uint32_t)(rank + i));
        MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, i, in, bytes, MPI_BYTE, (rank + size - 1) % size, i, comm, MPI_STATUS_IGNORE);
        CHECK(differs(in, (size_t)bytes, (uint32_t)((rank + size - 1) % size + i)) < 0, "%d bytes are wrong", bytes);
    }
    free(out);
    free(in);
}
static void levels(void) {
    MPI_Comm odd;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &odd);
    int sum = 0, one = 1, members;
    MPI_Comm_size(odd, &members);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, odd);
    CHECK(sum == members, "%d of %d", sum, members);
    for (int i = 0; i < threads; i++) {
        ring(comms[i], 8);
        ring(comms[i], 4000);
        ring(comms[i], 300000);
    }
    MPI_Comm_free(&odd);
}

// ------------------------------------------------------------------------------------------------------------- hints

static MPI_Comm hinted(const char* key, const char* value) {
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    int lane = lane_of(comm), least, most;
    MPI_Allreduce(&lane, &least, 1, MPI_INT, MPI_MIN, comm);
    MPI_Allreduce(&lane, &most, 1, MPI_INT, MPI_MAX, comm);
    CHECK(least == most, "lanes %d to %d in one communicator", least, most);
    return comm;
}
// Those that do not ask share the root lane; those that ask have lanes of their own, in order, and share them when there are no more.
static void hints(void) {
    for (int i = 0; i < threads; i++) CHECK(lane_of(comms[i]) == 0, "lane %d without a hint", lane_of(comms[i]));
    MPI_Comm asked[20];
    int used[16] = {0};
    for (int i = 0; i < 20; i++) {
        asked[i] = hinted(i % 2 ? "mpi_assert_new_vci" : "mpi_num_vcis", i % 2 ? "true" : "1");
        const int lane = lane_of(asked[i]);
        if (i == 0) need_lanes(lane != 0);
        CHECK(lane > 0 && lane < 16 && used[lane] == i / 15, "communicator %d has lane %d", i, lane);
        used[lane]++;
    }
    // What is given back is used again first.
    const int lane = lane_of(asked[14]);
    MPI_Comm_free(&asked[14]);
    if (used[lane] == 1) {
        asked[14] = hinted("mpi_assert_new_vci", "true");
        CHECK(lane_of(asked[14]) == lane, "lane %d, not %d", lane_of(asked[14]), lane);
    }
    MPI_Comm refused = hinted("mpi_assert_new_vci", "false");
    CHECK(lane_of(refused) == 0, "lane %d", lane_of(refused));
    MPI_Comm_free(&refused);
    for (int i = 0; i < 20; i++)
        if (asked[i] != MPI_COMM_NULL) MPI_Comm_free(&asked[i]);
}

// -------------------------------------------------------------------------------------------------------------- tags

// A duplicate of MPI_COMM_WORLD with several lanes: pairs of a key and a value, up to a null.
static MPI_Comm several(const char* const hints[][2]) {
    MPI_Comm made;
    MPI_Info info;
    MPI_Info_create(&info);
    for (int i = 0; hints[i][0]; i++) MPI_Info_set(info, hints[i][0], hints[i][1]);
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made));
    MPI_Info_free(&info);
    return made;
}

// Whether the communicator tells that value; null: that it tells none.
static void tells(MPI_Comm comm, const char* key, const char* want) {
    MPI_Info told;
    char value[128] = "";
    int there, room = sizeof value;
    MPI_Comm_get_info(comm, &told);
    MPI_Info_get_string(told, key, &room, value, &there);
    MPI_Info_free(&told);
    CHECK(there == (want != NULL) && (!want || strcmp(value, want) == 0), "%s is %s", key, value);
}

// Whether it tells so many lanes: other ones under WEFT_LANES=hints, as long as there are any, and none of them the root lane.
static void tells_lanes(MPI_Comm comm, int want) {
    MPI_Info told;
    char value[128] = "", *end = value;
    int there, room = sizeof value, n = 0;
    unsigned used = 0;
    MPI_Comm_get_info(comm, &told);
    MPI_Info_get_string(told, "weft_lane", &room, value, &there);
    MPI_Info_free(&told);
    for (; there && *end; n++) {
        const long lane = strtol(end, &end, 10);
        CHECK(lane >= 0 && lane < 16 && (*end == ',' || *end == 0), "lanes %s", value);
        used |= 1u << lane;
        end += *end == ',';
    }
    CHECK(n == want, "lanes %s", value);
    const char* how = getenv("WEFT_LANES");
    if (how && strcmp(how, "hints") == 0 && used != 1) CHECK(__builtin_popcount(used) == want && !(used & 1), "lanes %s", value);
}

static MPI_Comm shared;
enum { vcis = threads, app_bits = 12, vci_bits = 5 };
// As in the programs for which these hints were thought out: the sender's thread, the receiver's thread, the program's own tag.
static int tag_of(int from, int to, int app) { return from << (app_bits + vci_bits) | to << app_bits | app; }

// Every thread exchanges messages with every thread of every rank, by tags alone; the receives are posted in another order.
static void by_tags(int me) {
    enum { each = 20 };
    for (int r = 0; r < size; r++)
        for (int t = 0; t < threads; t++) {
            int out[each], in[each];
            MPI_Request request[2 * each];
            const int to = (me + t) % threads, from = (me + threads - t) % threads;
            for (int i = each - 1; i >= 0; i--)
                OK(MPI_Irecv(&in[i], 1, MPI_INT, r, tag_of(from, me, i), shared, &request[i]));
            for (int i = 0; i < each; i++) {
                out[i] = rank * 1000 + me * 100 + i;
                OK((i % 3 ? MPI_Isend : MPI_Issend)(&out[i], 1, MPI_INT, r, tag_of(me, to, i), shared, &request[each + i]));
            }
            OK(MPI_Waitall(2 * each, request, MPI_STATUSES_IGNORE));
            for (int i = 0; i < each; i++) CHECK(in[i] == r * 1000 + from * 100 + i, "%d from thread %d of %d", in[i], from, r);
        }
}

// The other calls, and what is no message of the user's, on a communicator of several lanes.
static void other_calls(MPI_Comm comm) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int tag = 0; tag < 40; tag += 3) {
        MPI_Request request;
        MPI_Message message;
        MPI_Status s;
        int out = rank + tag, in = -1, all = -1;
        OK(MPI_Isend(&out, 1, MPI_INT, right, tag, comm, &request));
        if (tag % 2) {
            OK(MPI_Probe(left, tag, comm, &s));
            OK(MPI_Recv(&in, 1, MPI_INT, left, tag, comm, &s));
        } else {
            OK(MPI_Mprobe(left, tag, comm, &message, &s));
            OK(MPI_Mrecv(&in, 1, MPI_INT, &message, &s));
        }
        CHECK(in == left + tag && s.MPI_SOURCE == left && s.MPI_TAG == tag, "%d from %d with tag %d", in, s.MPI_SOURCE, s.MPI_TAG);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Allreduce(&out, &all, 1, MPI_INT, MPI_SUM, comm));
        CHECK(all == size * (size - 1) / 2 + size * tag, "sum %d", all);
    }
    MPI_Win win;
    int *part, there = -1;
    OK(MPI_Win_allocate(sizeof *part, sizeof *part, MPI_INFO_NULL, comm, &part, &win));
    *part = rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&there, 1, MPI_INT, right, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(there == right, "%d", there);
    OK(MPI_Win_free(&win));
    MPI_Comm half;
    OK(MPI_Comm_split(comm, rank % 2, 0, &half));
    OK(MPI_Barrier(half));
    OK(MPI_Comm_free(&half));
}

static void tags(void) {
    static const char* const layout[][2] = {{"mpi_num_vcis", "4"}, {"mpi_assert_no_any_tag", "true"}, {"mpi_assert_no_any_source", "true"},
        {"mpi_assert_tag_based_parallelism", "true"}, {"mpi_num_tag_bits_for_vci", "5"}, {"mpi_num_tag_bits_for_app", "12"}, {NULL, NULL}};
    static const char* const plain[][2] = {{"mpi_num_vcis", "3"}, {"mpi_assert_no_any_tag", "true"}, {NULL, NULL}};
    static const char* const source[][2] = {{"mpi_num_vcis", "3"}, {"mpi_assert_no_any_source", "true"}, {NULL, NULL}};
    static const char* const too_long[][2] = {{"mpi_num_vcis", "3"}, {"mpi_assert_no_any_tag", "true"}, {"mpi_assert_tag_based_parallelism", "true"},
        {"mpi_num_tag_bits_for_vci", "12"}, {"mpi_num_tag_bits_for_app", "12"}, {NULL, NULL}};
    static const char* const unpromised[][2] = {{"mpi_num_vcis", "3"}, {"mpi_assert_allow_overtaking", "true"}, {NULL, NULL}};
    int value = 0;
    shared = several(layout);
    tells(shared, "mpi_num_vcis", "4");
    tells(shared, "weft_lane_by", "tag");
    tells(shared, "mpi_assert_no_any_tag", "true");
    all(threads, by_tags);
    other_calls(shared);
    MPI_Comm_set_errhandler(shared, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_TAG, MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, shared, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TAG, MPI_Probe(0, MPI_ANY_TAG, shared, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, shared, MPI_STATUS_IGNORE));
    MPI_Request request;
    FAILS(MPI_ERR_COMM, MPIX_Isend_global(&value, 1, MPI_INT, rank, 1, shared, &request));
    tells_lanes(shared, 4);
    MPI_Comm_free(&shared);
    shared = several(plain);
    tells(shared, "mpi_num_vcis", "3");
    other_calls(shared);
    OK(MPI_Barrier(shared));
    MPI_Comm_free(&shared);
    shared = several(source);
    tells(shared, "weft_lane_by", "source");
    other_calls(shared);
    MPI_Comm_set_errhandler(shared, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, shared, MPI_STATUS_IGNORE));
    MPI_Comm_free(&shared);
    const char* const (*const one_lane[])[2] = {too_long, unpromised};
    for (int i = 0; i < 2; i++) {
        shared = several(one_lane[i]);
        tells(shared, "mpi_num_vcis", NULL);
        tells(shared, "weft_lane_by", NULL);
        other_calls(shared);
        MPI_Comm_free(&shared);
    }
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "fuzz";
    const char* launched = getenv("WEFT_RANK");
    const int single = strcmp(what, "levels") == 0 && launched != NULL && atoi(launched) % 2 == 0;
    int provided;
    MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < threads; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    seed = argc > 2 ? atoi(argv[2]) : 1;
    rounds = argc > 3 ? atoi(argv[3]) : 4;
    hang_expected = argc > 2 && strcmp(argv[2], "hangs") == 0;
    if (strcmp(what, "liveness") == 0) {
        liveness();
    } else if (strcmp(what, "gets") == 0) {
        gets();
    } else if (strcmp(what, "sleep") == 0) {
        sleepers();
    } else if (strcmp(what, "levels") == 0) {
        levels();
    } else if (strcmp(what, "hints") == 0) {
        hints();
    } else if (strcmp(what, "tags") == 0) {
        tags();
    } else {
        CHECK(size <= most_ranks, "at most %d ranks", most_ranks);
        all(threads, fuzz);
    }
    for (int i = 0; i < threads; i++) MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return 0;
}
