// Random programs of sends and receives against what the matching rules say must happen: `fuzz SEED ROUNDS [threads]`.
//
// Every rank knows from the seed what every rank sends. Three communicators carry three kinds of traffic:
//   exact     receives name their source, tags may be wildcards: the outcome is unique, and a sequential oracle computes it
//   by tag    receives by MPI_ANY_SOURCE and a tag
//   any       receives by MPI_ANY_SOURCE and MPI_ANY_TAG
// For the last two the outcome is checked against the rules: messages of one source do not overtake each other in the eyes
// of a receive, and the earlier of two receives is served first.
// With `threads`, one thread posts the receives while another makes (also blocking) sends.
#include <pthread.h>

#include "check.h"

enum { exact, by_tag, any, worlds, most = 120, tags = 4 };
static MPI_Comm comms[worlds];

struct message {
    int from, to, world, tag, bytes, mode;
    uint32_t id;
};
struct receive {
    int world, source, tag, capacity, oracle;  // `oracle`: index of the message that must come, exact only
    int got;                                   // index of the message that came
    char* buf;
    MPI_Request request;
};

static struct message* messages;   // of this round, of all ranks, in the order in which each rank sends
static int n_messages;
static struct receive* receives;   // of this rank, in the order of posting
static int n_receives;
static uint64_t mine;              // randomness that only this rank needs

static int size_of_message(uint64_t* state) {
    static const int sizes[] = {4, 5, 8, 16, 31, 32, 33, 39, 40, 41, 44, 47, 48, 49, 56, 63, 64, 65, 100, 200, 500, 1000, 2000, 4000, 4096,
                                4097, 8000, 8191, 8192, 8193, 12000, 16384, 16400, 32768, 65536, 65537, 100000, 300000};
    enum { n = sizeof sizes / sizeof *sizes };
    return sizes[below(state, below(state, 4) ? 22 : n)];
}

static void invent_messages(uint64_t* state) {
    n_messages = (int)below(state, most) + size;
    for (int i = 0; i < n_messages; i++) {
        struct message* m = &messages[i];
        m->from = (int)below(state, (uint32_t)size);
        m->to = (int)below(state, (uint32_t)size);
        m->world = (int)below(state, worlds);
        m->tag = (int)below(state, tags);
        m->bytes = size_of_message(state);
        m->mode = (int)below(state, 8);
        m->id = (uint32_t)i;
    }
}

static int fits(const struct receive* r, const struct message* m) {
    return m->to == rank && m->world == r->world && (r->source == MPI_ANY_SOURCE || r->source == m->from) &&
           (r->tag == MPI_ANY_TAG || r->tag == m->tag);
}

// One receive for each message to this rank, in a random order. In the exact world each is made to fit some message that is
// still free, and the oracle gives it the first free one that fits, so that every receive gets one.
static void invent_receives(void) {
    int* mine_to_get = malloc(sizeof(int) * (unsigned)n_messages);
    char* taken = calloc((unsigned)n_messages, 1);
    int n = 0, largest = 4;
    for (int i = 0; i < n_messages; i++)
        if (messages[i].to == rank) {
            mine_to_get[n++] = i;
            if (messages[i].bytes > largest) largest = messages[i].bytes;
        }
    for (int i = n - 1; i > 0; i--) {
        int k = (int)below(&mine, (uint32_t)i + 1), t = mine_to_get[i];
        // Mostly near the order of sending, as programs do; sometimes anywhere.
        if (below(&mine, 3)) k = i - (int)below(&mine, (uint32_t)(i < 4 ? i + 1 : 5));
        mine_to_get[i] = mine_to_get[k], mine_to_get[k] = t;
    }
    n_receives = 0;
    for (int k = 0; k < n; k++) {
        struct receive* r = &receives[n_receives];
        // The one in turn may have been given away to a wildcard: take the first free one of its world and source.
        int i = mine_to_get[k];
        for (int j = 0; taken[i]; j++) {
            const int candidate = mine_to_get[j];
            if (!taken[candidate] && messages[candidate].world == exact) i = candidate;
        }
        const struct message* m = &messages[i];
        *r = (struct receive){.world = m->world, .source = MPI_ANY_SOURCE, .tag = m->tag, .oracle = -1, .got = -1};
        if (m->world == exact) {
            r->source = m->from;
            if (below(&mine, 3) == 0) r->tag = MPI_ANY_TAG;
            for (int j = 0; j < n_messages && r->oracle < 0; j++)
                if (!taken[j] && fits(r, &messages[j])) r->oracle = j;
            taken[r->oracle] = 1;
            r->capacity = messages[r->oracle].bytes + (int)below(&mine, 3) * 8;
        } else {
            if (m->world == any) r->tag = MPI_ANY_TAG;
            taken[i] = 1;
            r->capacity = largest;
        }
        n_receives++;
    }
    free(mine_to_get);
    free(taken);
}

static void post_receive(struct receive* r) {
    r->buf = new_buffer((size_t)r->capacity + 1);
    MPI_Irecv(r->buf, r->capacity, MPI_BYTE, r->source, r->tag, comms[r->world], &r->request);
}

// Sends message `m`; blocking modes only where `may_block`.
static void send_one(const struct message* m, char* buf, MPI_Request* request, int may_block) {
    memcpy(buf, &m->id, 4);
    for (int i = 4; i < m->bytes; i++) buf[i] = (char)pattern(m->id, (size_t)i);
    *request = MPI_REQUEST_NULL;
    const MPI_Comm comm = comms[m->world];
    switch (may_block ? m->mode : m->mode % 2 ? 2 : 3) {
        case 0:
        case 4: MPI_Send(buf, m->bytes, MPI_BYTE, m->to, m->tag, comm); break;
        case 1: MPI_Ssend(buf, m->bytes, MPI_BYTE, m->to, m->tag, comm); break;
        case 2: MPI_Issend(buf, m->bytes, MPI_BYTE, m->to, m->tag, comm, request); break;
        default: MPI_Isend(buf, m->bytes, MPI_BYTE, m->to, m->tag, comm, request); break;
    }
}

static void poke(void) {
    int flag;
    MPI_Status s;
    if (below(&mine, 4) == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[below(&mine, worlds)], &flag, &s);
    if (n_receives && below(&mine, 4) == 0) {
        struct receive* r = &receives[below(&mine, (uint32_t)n_receives)];
        if (r->buf) MPI_Request_get_status(r->request, &flag, MPI_STATUS_IGNORE);
    }
}

static void check_receive(struct receive* r, const MPI_Status* s) {
    uint32_t id;
    int count;
    memcpy(&id, r->buf, 4);
    CHECK(id < (uint32_t)n_messages, "a message that nobody sent: %u", id);
    const struct message* m = &messages[id];
    MPI_Get_count(s, MPI_BYTE, &count);
    CHECK(fits(r, m), "a receive from %d by tag %d in world %d got message %u from %d to %d, tag %d, world %d", r->source, r->tag, r->world, id,
          m->from, m->to, m->tag, m->world);
    CHECK(count == m->bytes, "message %u has %d bytes, not %d", id, count, m->bytes);
    CHECK(s->MPI_SOURCE == m->from && s->MPI_TAG == m->tag, "status says %d and %d, not %d and %d", s->MPI_SOURCE, s->MPI_TAG, m->from, m->tag);
    for (int i = 4; i < m->bytes; i++)
        CHECK(r->buf[i] == (char)pattern(id, (size_t)i), "message %u of %d bytes: byte %d is wrong", id, m->bytes, i);
    r->got = (int)id;
}

// The rules, for all receives of the round.
static void check_matching(void) {
    int* taker = malloc(sizeof(int) * (unsigned)n_messages);
    for (int i = 0; i < n_messages; i++) taker[i] = -1;
    for (int k = 0; k < n_receives; k++) {
        const struct receive* r = &receives[k];
        CHECK(taker[r->got] < 0, "message %d came twice", r->got);
        taker[r->got] = k;
        CHECK(r->oracle < 0 || r->oracle == r->got, "receive %d got message %d, the oracle says %d", k, r->got, r->oracle);
    }
    for (int k = 0; k < n_receives; k++)
        for (int i = 0; i < receives[k].got; i++)
            if (messages[i].from == messages[receives[k].got].from && fits(&receives[k], &messages[i]))
                CHECK(taker[i] >= 0 && taker[i] < k, "receive %d took message %d although %d of the same source was before it", k, receives[k].got, i);
    free(taker);
}

static void* send_all(void* arg) {
    (void)arg;
    MPI_Request* requests = malloc(sizeof *requests * (size_t)n_messages);
    char** buffers = malloc(sizeof *buffers * (size_t)n_messages);
    int n = 0;
    for (int i = 0; i < n_messages; i++)
        if (messages[i].from == rank) {
            buffers[n] = new_buffer((size_t)messages[i].bytes);
            send_one(&messages[i], buffers[n], &requests[n], 1);
            n++;
        }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) free_buffer(buffers[i]);
    free(buffers);
    free(requests);
    return NULL;
}

static void wait_all_receives(void) {
    MPI_Request* requests = malloc(sizeof *requests * (size_t)(n_receives + 1));
    for (int k = 0; k < n_receives; k++) requests[k] = receives[k].request;
    if (below(&mine, 2)) {
        for (int k = 0; k < n_receives; k++) {
            int index;
            MPI_Status s;
            MPI_Waitany(n_receives, requests, &index, &s);
            check_receive(&receives[index], &s);
        }
    } else {
        MPI_Status* statuses = malloc(sizeof *statuses * (size_t)(n_receives + 1));
        MPI_Waitall(n_receives, requests, statuses);
        for (int k = 0; k < n_receives; k++) check_receive(&receives[k], &statuses[k]);
        free(statuses);
    }
    free(requests);
    check_matching();
    for (int k = 0; k < n_receives; k++) {
        free_buffer(receives[k].buf);
        receives[k].buf = NULL;
    }
}

static void round_with_threads(void) {
    pthread_t sender;
    pthread_create(&sender, NULL, send_all, NULL);
    for (int k = 0; k < n_receives; k++) {
        post_receive(&receives[k]);
        poke();
    }
    wait_all_receives();
    pthread_join(sender, NULL);
}

// Alone, a rank mixes its sends and receives at random; nothing may block before all receives are posted.
static void round_alone(void) {
    MPI_Request* requests = malloc(sizeof *requests * (size_t)n_messages);
    char** buffers = malloc(sizeof *buffers * (size_t)n_messages);
    int n = 0, next = 0, k = 0;
    const uint32_t eager_to_send = 1 + below(&mine, 9);
    while (next < n_messages || k < n_receives) {
        if (next < n_messages && messages[next].from != rank) {
            next++;
        } else if (next < n_messages && (k == n_receives || below(&mine, 10) < eager_to_send)) {
            buffers[n] = new_buffer((size_t)messages[next].bytes);
            send_one(&messages[next++], buffers[n], &requests[n], 0);
            n++;
        } else {
            post_receive(&receives[k++]);
        }
        poke();
    }
    wait_all_receives();
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) free_buffer(buffers[i]);
    free(buffers);
    free(requests);
}

int main(int argc, char** argv) {
    CHECK(argc >= 3, "usage: fuzz SEED ROUNDS [threads]");
    const int with_threads = argc > 3;
    int provided;
    MPI_Init_thread(&argc, &argv, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < worlds; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    CHECK(size >= 1 && size <= 64, "1 to 64 ranks");
    messages = calloc(most + 64, sizeof *messages);
    receives = calloc(most + 64, sizeof *receives);
    const uint64_t seed = strtoull(argv[1], NULL, 0);
    const int rounds = atoi(argv[2]);
    for (int round = 0; round < rounds; round++) {
        uint64_t all = seed * 1000003u + (uint64_t)round;
        for (int i = 0; i < 4; i++) random32(&all);
        mine = all * 31 + (uint64_t)rank;
        for (int i = 0; i < 4; i++) random32(&mine);
        invent_messages(&all);
        invent_receives();
        if (with_threads) round_with_threads();
        else round_alone();
        MPI_Barrier(MPI_COMM_WORLD);  // a wildcard must not meet the next round's messages
    }
    for (int i = 0; i < worlds; i++) MPI_Comm_free(&comms[i]);
    free(messages);
    free(receives);
    return finish();
}
