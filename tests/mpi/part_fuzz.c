// Random partitioned programs: several messages at once between any two processes, also to oneself and of one tag, divided
// differently on both sides, in types with gaps, started again and again in any order; partitions are marked one by one, in
// ranges and in lists, by two threads; the receiver has more room than is sent, or just enough; buffers come from malloc or from
// MPI_Alloc_mem; messages and partitions are small, or too large to be staged. Arguments: seed, iterations.
#include "check.h"

#include <pthread.h>

enum { most = 5, most_parts = 24, guard = 16 };

struct message {
    int from, to, tag, sent_parts, received_parts, starts, strided_send, strided_receive, pairs, shared_out, shared_in;
    int sent_each, received_each;   // integers in a partition
    char *out, *in;
    MPI_Request send, receive;
    uint32_t salt;
};
static MPI_Datatype strided_int, pair;

static long total(const struct message* m) { return (long)m->sent_parts * m->sent_each; }
static uint32_t value(const struct message* m, int round, long i) {
    uint64_t s = m->salt * 2654435761ull + (uint64_t)round * 40503 + (uint64_t)i;
    return random32(&s);
}

static char* buffer(long bytes, int shared) {
    char* p = NULL;
    if (shared) OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &p));
    else p = malloc((size_t)bytes);
    return p;
}
static void give_back(char* p, int shared) {
    if (p != NULL && shared) OK(MPI_Free_mem(p));
    else free(p);
}

static void draw(struct message* m, uint64_t* state) {
    memset(m, 0, sizeof *m);
    m->from = (int)below(state, (uint32_t)size), m->to = (int)below(state, (uint32_t)size);
    m->tag = (int)below(state, 2);
    m->sent_parts = 1 + (int)below(state, most_parts), m->received_parts = 1 + (int)below(state, most_parts);
    int unit = (int)below(state, below(state, 5) == 0 ? 400 : 12);
    if (below(state, 40) == 0) unit = 2000;
    m->sent_each = unit * m->received_parts, m->received_each = unit * m->sent_parts + (below(state, 4) == 0 ? 3 : 0);
    m->starts = 1 + (int)below(state, 3);
    m->strided_send = (int)below(state, 2), m->strided_receive = (int)below(state, 2);
    // Received in pairs, a boundary may lie within an element.
    if ((m->pairs = !m->strided_receive && below(state, 2))) m->received_each += m->received_each % 2;
    m->shared_out = (int)below(state, 2), m->shared_in = (int)below(state, 2);
    m->salt = random32(state);
}

static void make(struct message* m) {
    m->send = m->receive = MPI_REQUEST_NULL;
    if (m->from == rank) {
        m->out = buffer(total(m) * 8 + guard, m->shared_out);
        OK(MPI_Psend_init(m->out, m->sent_parts, m->sent_each, m->strided_send ? strided_int : MPI_INT, m->to, m->tag, MPI_COMM_WORLD, MPI_INFO_NULL, &m->send));
    }
    if (m->to == rank) {
        m->in = buffer((long)m->received_parts * m->received_each * 8 + guard, m->shared_in);
        MPI_Datatype type = m->strided_receive ? strided_int : m->pairs ? pair : MPI_INT;
        OK(MPI_Precv_init(m->in, m->received_parts, m->received_each / (m->pairs ? 2 : 1), type, m->from, m->tag, MPI_COMM_WORLD, MPI_INFO_NULL, &m->receive));
    }
}

static void begin(struct message* m, int round) {
    if (m->from == rank) {
        for (long i = 0; i < total(m); i++) {
            uint32_t v = value(m, round, i);
            memcpy(m->out + i * (m->strided_send ? 8 : 4), &v, 4);
        }
        OK(MPI_Start(&m->send));
    }
    if (m->to == rank) {
        memset(m->in, 0xee, (size_t)m->received_parts * (size_t)m->received_each * 8 + guard);
        OK(MPI_Start(&m->receive));
    }
}

// Marks all partitions whose turn it is: of two markers each has every second run of them.
struct marker {
    struct message* messages;
    int n, round, mine;
    uint64_t state;
};
static void* mark(void* arg) {
    struct marker* k = arg;
    for (int i = 0; i < k->n; i++) {
        struct message* m = &k->messages[i];
        if (m->from != rank || k->round >= m->starts) continue;
        int half = m->sent_parts / 2, low = k->mine ? half : 0, high = k->mine ? m->sent_parts : half, list[most_parts], n = 0;
        if (low == high) continue;
        switch (below(&k->state, 3)) {
        case 0:
            OK(MPI_Pready_range(low, high - 1, m->send));
            break;
        case 1:
            for (int p = high - 1; p >= low; p--) list[n++] = p;
            OK(MPI_Pready_list(n, list, m->send));
            break;
        default:
            for (int p = low; p < high; p += 2) OK(MPI_Pready(p, m->send));
            for (int p = low + 1; p < high; p += 2) OK(MPI_Pready(p, m->send));
        }
    }
    return NULL;
}

static void expect(const struct message* m, int round, long first, long last) {
    for (long i = first; i < last; i++) {
        uint32_t v = value(m, round, i), got;
        memcpy(&got, m->in + i * (m->strided_receive ? 8 : 4), 4);
        CHECK(got == v, "round %d, %d partitions of %d as %d of %d: element %ld of %ld is %x, not %x", round, m->sent_parts, m->sent_each,
              m->received_parts, m->received_each, i, total(m), got, v);
    }
}

static void end(struct message* m, int round, uint64_t* own) {
    MPI_Status s;
    int n;
    if (m->to == rank) {
        // A partition may be read as soon as it is there, also while others are not.
        int p = (int)below(own, (uint32_t)m->received_parts), flag = below(own, 2) == 0;
        while (!flag) OK(MPI_Parrived(m->receive, p, &flag));
        long first = (long)p * m->received_each, last = first + m->received_each;
        if (flag && below(own, 2) == 0 && last <= total(m)) {
            flag = 0;
            while (!flag) OK(MPI_Parrived(m->receive, p, &flag));
            expect(m, round, first, last);
        }
        OK(MPI_Wait(&m->receive, &s));
        MPI_Get_count(&s, MPI_INT, &n);
        CHECK(s.MPI_SOURCE == m->from && s.MPI_TAG == m->tag && n == total(m), "%d from %d, tag %d", n, s.MPI_SOURCE, s.MPI_TAG);
        expect(m, round, 0, total(m));
        for (long i = total(m) * (m->strided_receive ? 8 : 4); i < (long)m->received_parts * m->received_each * 8 + guard; i++)
            CHECK((unsigned char)m->in[i] == 0xee, "something behind the message");
    }
    if (m->from == rank) OK(MPI_Wait(&m->send, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, own = (uint64_t)rank * 77 + 1;
    int iterations = argc > 2 ? atoi(argv[2]) : 100;
    MPI_Type_create_resized(MPI_INT, 0, 8, &strided_int);
    MPI_Type_commit(&strided_int);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < iterations; i++) {
        struct message m[most];
        int n = 1 + (int)below(&state, most);
        for (int k = 0; k < n; k++) draw(&m[k], &state);
        for (int k = 0; k < n; k++) make(&m[k]);
        for (int round = 0; round < 3; round++) {
            int turn = (int)below(&own, (uint32_t)n);   // everybody starts and ends in an order of its own
            for (int k = 0; k < n; k++)
                if (round < m[(k + turn) % n].starts) begin(&m[(k + turn) % n], round);
            struct marker one = {m, n, round, 0, own}, other = {m, n, round, 1, own + 5};
            pthread_t t;
            pthread_create(&t, NULL, mark, &one);
            mark(&other);
            pthread_join(t, NULL);
            turn = (int)below(&own, (uint32_t)n);
            for (int k = 0; k < n; k++)
                if (round < m[(k + turn) % n].starts) end(&m[(k + turn) % n], round, &own);
        }
        for (int k = 0; k < n; k++) {
            if (m[k].send != MPI_REQUEST_NULL) OK(MPI_Request_free(&m[k].send));
            if (m[k].receive != MPI_REQUEST_NULL) OK(MPI_Request_free(&m[k].receive));
            give_back(m[k].out, m[k].shared_out);
            give_back(m[k].in, m[k].shared_in);
        }
    }
    MPI_Type_free(&strided_int);
    MPI_Type_free(&pair);
    return finish();
}
