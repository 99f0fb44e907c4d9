// Barrier, Bcast, Reduce, Allreduce, Gather and Allgather against what one process computes, on any number of ranks, at
// sizes on both sides of the limits, with MPI_IN_PLACE, on MPI_COMM_WORLD, MPI_COMM_SELF and a duplicate.
#include "check.h"

static const int counts[] = {0, 1, 2, 3, 7, 16, 100, 1023, 5000, 40000};
enum { most = 40000 };

static long element(int r, int i) { return (long)(r + 1) * 7919 + (long)i * 13 + (i % 5) * (long)r; }

static void one_root(MPI_Comm comm, int me, int n, int count, int root, long* a, long* b) {
    // Bcast
    for (int i = 0; i < count; i++) a[i] = me == root ? element(root, i) : -1;
    MPI_Bcast(a, count, MPI_LONG, root, comm);
    for (int i = 0; i < count; i++) CHECK(a[i] == element(root, i), "Bcast from %d: element %d of %d", root, i, count);

    // Reduce with a sum, a maximum and in place
    for (int i = 0; i < count; i++) a[i] = element(me, i), b[i] = -1;
    MPI_Reduce(a, b, count, MPI_LONG, MPI_SUM, root, comm);
    for (int i = 0; i < count; i++) {
        long sum = 0;
        for (int r = 0; r < n; r++) sum += element(r, i);
        CHECK(a[i] == element(me, i), "Reduce wrote into the send buffer");
        if (me == root) CHECK(b[i] == sum, "Reduce to %d: element %d is %ld, not %ld", root, i, b[i], sum);
        else CHECK(b[i] == -1, "Reduce wrote at a rank that is not the root");
    }
    if (me == root) {
        MPI_Reduce(MPI_IN_PLACE, a, count, MPI_LONG, MPI_MAX, root, comm);
        for (int i = 0; i < count; i++) CHECK(a[i] == element(n - 1, i), "Reduce in place: element %d", i);
    } else {
        MPI_Reduce(a, NULL, count, MPI_LONG, MPI_MAX, root, comm);
    }

    // Gather
    const int each = count < 1000 ? count : 1000;
    for (int i = 0; i < each; i++) a[i] = element(me, i);
    MPI_Gather(a, each, MPI_LONG, b, each, MPI_LONG, root, comm);
    if (me == root) {
        for (int r = 0; r < n; r++)
            for (int i = 0; i < each; i++) CHECK(b[r * each + i] == element(r, i), "Gather to %d: element %d of rank %d", root, i, r);
        for (int i = 0; i < each; i++) {
            b[me * each + i] = element(me, i) + 1;
        }
        MPI_Gather(MPI_IN_PLACE, each, MPI_LONG, b, each, MPI_LONG, root, comm);
        for (int r = 0; r < n; r++)
            for (int i = 0; i < each; i++) CHECK(b[r * each + i] == element(r, i) + (r == me), "Gather in place");
    } else {
        MPI_Gather(a, each, MPI_LONG, NULL, 0, MPI_LONG, root, comm);
    }
}

static void everybody(MPI_Comm comm, int me, int n, int count, long* a, long* b) {
    for (int i = 0; i < count; i++) a[i] = element(me, i), b[i] = -1;
    MPI_Allreduce(a, b, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) {
        long sum = 0;
        for (int r = 0; r < n; r++) sum += element(r, i);
        CHECK(b[i] == sum, "Allreduce: element %d of %d", i, count);
    }
    MPI_Allreduce(MPI_IN_PLACE, a, count, MPI_LONG, MPI_MIN, comm);
    for (int i = 0; i < count; i++) CHECK(a[i] == element(0, i), "Allreduce in place: element %d", i);

    const int each = count < 1000 ? count : 1000;
    for (int i = 0; i < each; i++) a[i] = element(me, i);
    MPI_Allgather(a, each, MPI_LONG, b, each, MPI_LONG, comm);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < each; i++) CHECK(b[r * each + i] == element(r, i), "Allgather: element %d of rank %d", i, r);
    memset(b, 0, (size_t)(n * each) * sizeof *b);
    for (int i = 0; i < each; i++) b[me * each + i] = element(me, i) + 3;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, each, MPI_LONG, comm);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < each; i++) CHECK(b[r * each + i] == element(r, i) + 3, "Allgather in place: element %d of rank %d", i, r);
}

static void types_and_ops(MPI_Comm comm, int me, int n) {
    double d = me + 0.5, dsum;
    MPI_Allreduce(&d, &dsum, 1, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(dsum == n * (n - 1) / 2.0 + n * 0.5, "double sum %g", dsum);
    int bits = 1 << me, all;
    MPI_Allreduce(&bits, &all, 1, MPI_INT, MPI_BOR, comm);
    CHECK(all == (1 << n) - 1, "bits %x", (unsigned)all);
    int truth = me == 0 ? 0 : 1;
    MPI_Allreduce(&truth, &all, 1, MPI_INT, MPI_LAND, comm);
    CHECK(all == 0, "logical and");
    struct {
        double value;
        int index;
    } pair = {(double)((me * 7 + 3) % n), me}, best;
    MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    double most_value = -1;
    int at = -1;
    for (int r = 0; r < n; r++)
        if ((r * 7 + 3) % n > most_value) most_value = (r * 7 + 3) % n, at = r;
    CHECK(best.value == most_value && best.index == at, "maxloc %g at %d", best.value, best.index);
    float f = 2.0f, product;
    MPI_Allreduce(&f, &product, 1, MPI_FLOAT, MPI_PROD, comm);
    CHECK(product == (float)(1 << n), "product %g", (double)product);
}

// A barrier is one: nobody leaves before the last has come.
static void barrier(void) {
    for (int late = 0; late < size; late++) {
        if (rank == late) sleep_ms(20);
        double came = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        double left = MPI_Wtime(), last;
        MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        int *global, flag;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &flag);
        if (flag && *global) CHECK(left >= last, "a rank left the barrier %g s before the last came", last - left);
    }
}

// Sums of doubles, where the order shows in the last bits: every process gets the same, and the same again.
static void reproducible(MPI_Comm comm, int me, int n) {
    enum { room = 20000 };
    static double own[room], first[room], again[room], told[room];
    const int n_doubles[] = {1, 100, room};
    uint64_t state = (uint64_t)me + 1;
    for (int i = 0; i < room; i++) own[i] = (double)random32(&state) * (i % 3 ? 1e-9 : 1e9);
    for (unsigned c = 0; c < sizeof n_doubles / sizeof n_doubles[0]; c++) {
        size_t bytes = sizeof(double) * (size_t)n_doubles[c];
        OK(MPI_Allreduce(own, first, n_doubles[c], MPI_DOUBLE, MPI_SUM, comm));
        OK(MPI_Allreduce(own, again, n_doubles[c], MPI_DOUBLE, MPI_SUM, comm));
        CHECK(memcmp(first, again, bytes) == 0, "another sum for the same arguments");
        memcpy(told, first, bytes);
        OK(MPI_Bcast(told, n_doubles[c], MPI_DOUBLE, n - 1, comm));
        CHECK(memcmp(first, told, bytes) == 0, "another sum than the last process has");
        OK(MPI_Reduce(own, first, n_doubles[c], MPI_DOUBLE, MPI_SUM, 0, comm));
        OK(MPI_Reduce(own, again, n_doubles[c], MPI_DOUBLE, MPI_SUM, 0, comm));
        CHECK(me != 0 || memcmp(first, again, bytes) == 0, "another sum for the same arguments");
    }
}

static void on(MPI_Comm comm) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    long* a = malloc(sizeof *a * most);
    long* b = malloc(sizeof *b * (size_t)(most + 1000 * n));
    for (int c = 0; c < (int)(sizeof counts / sizeof *counts); c++) {
        for (int root = 0; root < n; root++) one_root(comm, me, n, counts[c], root, a, b);
        everybody(comm, me, n, counts[c], a, b);
    }
    types_and_ops(comm, me, n);
    reproducible(comm, me, n);
    free(a);
    free(b);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    barrier();
    on(MPI_COMM_WORLD);
    on(MPI_COMM_SELF);
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    // A message of the user's with any tag must not meet those of a collective.
    int value = rank, got = -1;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, dup, &request);
    on(dup);
    MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 0, dup);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == (rank + size - 1) % size, "a receive by wildcard took a collective's message");
    MPI_Comm_free(&dup);
    return finish();
}
