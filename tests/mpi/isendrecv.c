// MPI_Isendrecv and MPI_Isendrecv_replace: cycles, all sizes, MPI_PROC_NULL, statuses, errors, freeing.
#include "check.h"

enum { n_sizes = 6 };
static const int sizes[n_sizes] = {0, 8, 49, 5000, 70000, 600000};

static void expect(const MPI_Status* s, int source, int tag, int bytes) {
    int count = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    CHECK(s->MPI_SOURCE == source && s->MPI_TAG == tag && count == bytes, "status: %d %d %d, not %d %d %d",
          s->MPI_SOURCE, s->MPI_TAG, count, source, tag, bytes);
}

// All cycles at once; with one rank the cycle is the rank itself.
static void cycles(int replace) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request r[n_sizes];
    MPI_Status s[n_sizes];
    char *out[n_sizes], *in[n_sizes];
    for (int i = 0; i < n_sizes; i++) {
        out[i] = malloc((size_t)sizes[i] + 1);
        in[i] = replace ? out[i] : malloc((size_t)sizes[i] + 1);
        fill(out[i], (size_t)sizes[i], (uint32_t)(rank * 100 + i));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n_sizes; i++) {
            const int n = sizes[i], source = round ? from : MPI_ANY_SOURCE;
            if (replace)
                OK(MPI_Isendrecv_replace(out[i], n, MPI_BYTE, to, i, source, i, MPI_COMM_WORLD, &r[i]));
            else
                OK(MPI_Isendrecv(out[i], n, MPI_BYTE, to, i, in[i], n, MPI_BYTE, source, i, MPI_COMM_WORLD, &r[i]));
        }
        if (round == 1) {
            for (int left = n_sizes; left > 0; left--) {
                int index;
                MPI_Status one;
                OK(MPI_Waitany(n_sizes, r, &index, &one));
                s[index] = one;
            }
        } else {
            OK(MPI_Waitall(n_sizes, r, s));
        }
        for (int i = 0; i < n_sizes; i++) {
            expect(&s[i], from, i, sizes[i]);
            const int origin = replace ? (rank + (round + 1) * (size - 1)) % size : from;
            CHECK(differs(in[i], (size_t)sizes[i], (uint32_t)(origin * 100 + i)) < 0,
                  "replace %d, round %d, size %d", replace, round, sizes[i]);
            CHECK(r[i] == MPI_REQUEST_NULL, "the request is still there");
        }
    }
    for (int i = 0; i < n_sizes; i++) {
        if (!replace) free(in[i]);
        free(out[i]);
    }
}

static void ends_of_a_chain(void) {
    const int to = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, from = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int value = rank, got = -1;
    MPI_Request r;
    MPI_Status s;
    OK(MPI_Isendrecv(&value, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &r));
    OK(MPI_Wait(&r, &s));
    if (from == MPI_PROC_NULL) expect(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    else expect(&s, from, 1, 4);
    CHECK(got == (from == MPI_PROC_NULL ? -1 : from), "got %d", got);
    OK(MPI_Isendrecv_replace(&value, 1, MPI_INT, to, 2, from, 2, MPI_COMM_WORLD, &r));
    OK(MPI_Wait(&r, &s));
    CHECK(value == (from == MPI_PROC_NULL ? rank : from), "replaced by %d", value);
}

static void derived(void) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Datatype every_second;
    MPI_Request r;
    static int v[40000];
    OK(MPI_Type_vector(20000, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int i = 0; i < 40000; i++) v[i] = rank * 100000 + i;
    OK(MPI_Isendrecv_replace(v, 1, every_second, to, 3, from, 3, MPI_COMM_WORLD, &r));
    OK(MPI_Type_free(&every_second));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    for (int i = 0; i < 40000; i++)
        CHECK(v[i] == (i % 2 ? rank : from) * 100000 + i, "element %d: %d", i, v[i]);
}

static void freed_while_active(void) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    static char out[300000], in[300000], both[300000];
    MPI_Request r[2];
    fill(out, sizeof out, (uint32_t)rank);
    fill(both, sizeof both, (uint32_t)rank + 50);
    OK(MPI_Isendrecv(out, sizeof out, MPI_BYTE, to, 4, in, sizeof in, MPI_BYTE, from, 4, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Isendrecv_replace(both, sizeof both, MPI_BYTE, to, 5, from, 5, MPI_COMM_WORLD, &r[1]));
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
    // What follows on the same way comes after it.
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, to, 6, NULL, 0, MPI_INT, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const double until = seconds() + 30;
    int flag;
    while (seconds() < until &&
           (differs(in, sizeof in, (uint32_t)from) >= 0 || differs(both, sizeof both, (uint32_t)from + 50) >= 0))
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(differs(in, sizeof in, (uint32_t)from) < 0, "MPI_Isendrecv did not go on");
    CHECK(differs(both, sizeof both, (uint32_t)from + 50) < 0, "MPI_Isendrecv_replace did not go on");
}

static void refused(void) {
    int value[2] = {1, 2}, got = -1, flag;
    MPI_Request r;
    MPI_Status s;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Isendrecv(value, 2, MPI_INT, rank, 7, &got, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, &r));
    OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &s));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&r, &s));
    expect(&s, rank, 7, 4);
    FAILS(MPI_ERR_RANK, MPI_Isendrecv(value, 1, MPI_INT, size, 7, &got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &r));
    FAILS(MPI_ERR_TAG, MPI_Isendrecv(value, 1, MPI_INT, 0, 7, &got, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &r));
    FAILS(MPI_ERR_COUNT, MPI_Isendrecv_replace(value, -1, MPI_INT, 0, 7, 0, 7, MPI_COMM_WORLD, &r));
    // Status without consuming: twice the same, then the real one.
    OK(MPI_Isendrecv(value, 1, MPI_INT, rank, 8, &got, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &r));
    for (int i = 0; i < 2; i++) {
        do OK(MPI_Request_get_status(r, &flag, &s));
        while (!flag);
        expect(&s, rank, 8, 4);
    }
    OK(MPI_Wait(&r, &s));
    expect(&s, rank, 8, 4);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    cycles(0);
    cycles(1);
    ends_of_a_chain();
    derived();
    freed_while_active();
    refused();
    return finish();
}
