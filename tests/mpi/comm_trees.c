// Random trees of communicators made by four threads at once, each from its own duplicate of MPI_COMM_WORLD: split, dup, idup,
// create, create_group, intercommunicators and merges, some freed early, each tried by collectives (also two at a time) and
// by a message, against what must come out. Arguments: seed, steps.
#include "check.h"

#include <pthread.h>

enum { threads = 4, most = 12, most_ranks = 64 };

struct node {
    MPI_Comm comm;
    int n, me, world[most_ranks];   // the members' world ranks
};

static int steps = 40;
static uint64_t seed = 1;

static void describe(struct node* x, MPI_Comm comm) {
    x->comm = comm;
    MPI_Comm_size(comm, &x->n);
    MPI_Comm_rank(comm, &x->me);
    int own = rank;
    // Also the first trial of the new communicator.
    OK(MPI_Allgather(&own, 1, MPI_INT, x->world, 1, MPI_INT, comm));
    CHECK(x->world[x->me] == rank, "rank %d of the new communicator", x->me);
}

static void expect_members(const struct node* x, const int* want, int n) {
    CHECK(x->n == n, "%d members, not %d", x->n, n);
    for (int i = 0; i < n; i++) CHECK(x->world[i] == want[i], "member %d is %d, not %d", i, x->world[i], want[i]);
}

static void try_out(const struct node* x, uint32_t salt) {
    int in = rank + (int)salt, sum = 0, scan = 0, want = 0, before = 0, root = (int)(salt % (uint32_t)x->n), told = x->me == root ? (int)salt : -1;
    MPI_Request r[2];
    OK(MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, x->comm, &r[0]));
    OK(MPI_Ibcast(&told, 1, MPI_INT, root, x->comm, &r[1]));
    OK(MPI_Scan(&in, &scan, 1, MPI_INT, MPI_SUM, x->comm));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < x->n; i++) {
        want += x->world[i] + (int)salt;
        if (i <= x->me) before += x->world[i] + (int)salt;
    }
    CHECK(sum == want && told == (int)salt && scan == before, "sum %d of %d, told %d, scan %d of %d", sum, want, told, scan, before);
    int to = (x->me + 1) % x->n, from = (x->me + x->n - 1) % x->n, got = -1;
    OK(MPI_Sendrecv(&in, 1, MPI_INT, to, 3, &got, 1, MPI_INT, from, 3, x->comm, MPI_STATUS_IGNORE));
    CHECK(got == x->world[from] + (int)salt, "a message of another communicator");
}

// One step down from `x`; all members draw the same numbers from `shared`. MPI_COMM_NULL for those left out.
static MPI_Comm grow(const struct node* x, uint64_t* shared, int thread, int* want, int* n_want) {
    MPI_Comm made = MPI_COMM_NULL, inter;
    MPI_Group all, part;
    MPI_Request r;
    uint32_t kind = below(shared, 6), k = 1 + below(shared, 3);
    int list[most_ranks], n = 0;
    for (int i = 0; i < x->n; i++)
        if ((uint32_t)i % k == 0) list[n++] = i;
    *n_want = 0;
    switch (kind) {
    case 0:   // split, backwards
        OK(MPI_Comm_split(x->comm, x->me % (int)k, -x->me, &made));
        for (int i = x->n - 1; i >= 0; i--)
            if (i % (int)k == x->me % (int)k) want[(*n_want)++] = x->world[i];
        return made;
    case 1:
        OK(MPI_Comm_dup(x->comm, &made));
        break;
    case 2:
        OK(MPI_Comm_idup(x->comm, &made, &r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        break;
    case 3: case 4:
        MPI_Comm_group(x->comm, &all);
        MPI_Group_incl(all, n, list, &part);
        if (kind == 3) OK(MPI_Comm_create(x->comm, part, &made));
        else if (x->me % (int)k == 0) OK(MPI_Comm_create_group(x->comm, part, thread, &made));
        MPI_Group_free(&part);
        MPI_Group_free(&all);
        for (int i = 0; i < n; i++) want[i] = x->world[list[i]];
        *n_want = n;
        return made;
    default:   // halves, an intercommunicator, and together again, the upper half first
        if (x->n == 1) {
            OK(MPI_Comm_dup(x->comm, &made));
            break;
        } else {
            MPI_Comm half;
            int middle = x->n / 2, high = x->me >= middle;
            OK(MPI_Comm_split(x->comm, high, x->me, &half));
            OK(MPI_Intercomm_create(half, 0, x->comm, high ? 0 : middle, thread, &inter));
            OK(MPI_Intercomm_merge(inter, !high, &made));
            MPI_Comm_free(&inter);
            MPI_Comm_free(&half);
            for (int i = 0; i < x->n; i++) want[i] = x->world[(i + middle) % x->n];
            *n_want = x->n;
            return made;
        }
    }
    for (int i = 0; i < x->n; i++) want[i] = x->world[i];
    *n_want = x->n;
    return made;
}

static MPI_Comm roots[threads];

static void* one_thread(void* arg) {
    int thread = (int)(intptr_t)arg;
    // Members of one communicator must draw alike, so each keeps its own sequence, seeded alike by what they share.
    struct node nodes[most];
    uint64_t states[most];
    int n = 1;
    describe(&nodes[0], roots[thread]);
    states[0] = seed * 1000 + (uint64_t)thread;
    for (int i = 0; i < steps; i++) {
        // Depth first from the root: every process takes part in as long a chain as it is chosen for.
        int want[most_ranks], n_want;
        struct node* x = &nodes[n - 1];
        uint32_t salt = below(&states[n - 1], 1000);
        MPI_Comm made = n < most ? grow(x, &states[n - 1], thread, want, &n_want) : MPI_COMM_NULL;
        try_out(x, salt);
        if (made != MPI_COMM_NULL) {
            describe(&nodes[n], made);
            expect_members(&nodes[n], want, n_want);
            states[n] = seed * 77 + (uint64_t)thread * 13 + (uint64_t)i * 7 + (uint64_t)nodes[n].world[0];
            // Every member tries it; those left out wait above for its members' return.
            for (int k = 0; k < 2; k++) try_out(&nodes[n], below(&states[n], 1000));
            int deeper = below(&states[n], 3) == 0;
            if (deeper) {
                int inner[most_ranks], n_inner;
                MPI_Comm child = grow(&nodes[n], &states[n], thread, inner, &n_inner);
                if (child != MPI_COMM_NULL) {
                    struct node leaf;
                    describe(&leaf, child);
                    expect_members(&leaf, inner, n_inner);
                    try_out(&leaf, 5);
                    MPI_Comm_free(&leaf.comm);
                }
            }
            // Whole duplicates are kept and built upon; the rest goes.
            if (nodes[n].n == x->n && nodes[n].n == size && n + 1 < most) n++;
            else MPI_Comm_free(&nodes[n].comm);
        }
    }
    while (n > 1) MPI_Comm_free(&nodes[--n].comm);
    return NULL;
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE && size <= most_ranks, "level %d, %d ranks", provided, size);
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) steps = atoi(argv[2]);
    pthread_t t[threads];
    for (int i = 0; i < threads; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &roots[i]));
    for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, one_thread, (void*)(intptr_t)i);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < threads; i++) MPI_Comm_free(&roots[i]);
    return finish();
}
