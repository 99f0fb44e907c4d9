// Datatypes of the core: contiguous, dup, commit, free, sizes and extents; sends and receives with them; counts that do not
// divide are MPI_UNDEFINED; Fortran's types in C have their usual sizes until others are said.
#include "check.h"

// Fortran's types as every compiler makes them by default, and what is computed with them.
static void fortran_by_default(void) {
    static const struct {
        const char* name;
        MPI_Datatype type;
        int bytes;
    } all[] = {
#define T(name, bytes) {#name, name, bytes}
        T(MPI_INTEGER, 4), T(MPI_LOGICAL, 4), T(MPI_REAL, 4), T(MPI_DOUBLE_PRECISION, 8), T(MPI_COMPLEX, 8), T(MPI_DOUBLE_COMPLEX, 16),
        T(MPI_2INTEGER, 8), T(MPI_2REAL, 8), T(MPI_2DOUBLE_PRECISION, 16), T(MPI_INTEGER1, 1), T(MPI_INTEGER2, 2), T(MPI_INTEGER4, 4),
        T(MPI_INTEGER8, 8), T(MPI_INTEGER16, 16), T(MPI_LOGICAL1, 1), T(MPI_LOGICAL2, 2), T(MPI_LOGICAL4, 4), T(MPI_LOGICAL8, 8),
        T(MPI_LOGICAL16, 16), T(MPI_REAL2, 2), T(MPI_REAL4, 4), T(MPI_REAL8, 8), T(MPI_REAL16, 16), T(MPI_COMPLEX4, 4), T(MPI_COMPLEX8, 8),
        T(MPI_COMPLEX16, 16), T(MPI_COMPLEX32, 32),
#undef T
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int bytes = -1;
        MPI_Aint lb, extent;
        unsigned char sent[32], got[32] = {0};
        OK(MPI_Type_size(all[i].type, &bytes));
        OK(MPI_Type_get_extent(all[i].type, &lb, &extent));
        CHECK(bytes == all[i].bytes && lb == 0 && extent == bytes, "%s has %d bytes", all[i].name, bytes);
        fill(sent, sizeof sent, (uint32_t)i);
        OK(MPI_Sendrecv(sent, 1, all[i].type, rank, 0, got, 1, all[i].type, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(differs(got, (size_t)bytes, (uint32_t)i) < 0, "%s", all[i].name);
    }
    int n = rank + 1, sum = 0, truth = rank == 0, any = 0, at[2] = {rank, 10 + rank}, best[2] = {0, 0};
    float real[2] = {1.5f, -1}, reals[2] = {0, 0};
    double d = 0.25, most = 0;
    char c = (char)(rank + 1), chars = 0;
    OK(MPI_Allreduce(&n, &sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size + 1) / 2, "%d", sum);
    OK(MPI_Allreduce(&truth, &any, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD));
    CHECK(any != 0, "%d", any);
    OK(MPI_Allreduce(at, best, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD));
    CHECK(best[0] == size - 1 && best[1] == 10 + size - 1, "%d at %d", best[0], best[1]);
    OK(MPI_Allreduce(real, reals, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD));
    CHECK(reals[0] == 1.5f * (float)size && reals[1] == (float)-size, "%g %g", (double)reals[0], (double)reals[1]);
    OK(MPI_Allreduce(&d, &most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD));
    CHECK(most == d, "%g", most);
    OK(MPI_Allreduce(&c, &chars, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD));   // as benchmarks do
    CHECK(chars == size * (size + 1) / 2, "%d", chars);
    MPI_Datatype t;
    OK(MPI_Type_contiguous(3, MPI_INTEGER, &t));
    OK(MPI_Type_free(&t));
}

// The sizes of Fortran's types are said once, by whoever knows the compiler; those it lacks stay an error.
static void fortran(void) {
    int bytes = -1;
    long sent = 5, got = 0, sum = 0;
    MPI_Info info;
    OK(MPI_Abi_get_fortran_info(&info));
    CHECK(info == MPI_INFO_NULL, "somebody has told the sizes of Fortran's types");
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_logical_size", "4"));
    OK(MPI_Info_set(info, "mpi_integer_size", "8"));  // as after -fdefault-integer-8
    OK(MPI_Info_set(info, "mpi_real_size", "4"));
    OK(MPI_Info_set(info, "mpi_double_precision_size", "8"));
    OK(MPI_Info_set(info, "mpi_real8_supported", "true"));
    OK(MPI_Info_set(info, "mpi_real16_supported", "false"));
    OK(MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_free(&info));
    OK(MPI_Type_size(MPI_INTEGER, &bytes));
    CHECK(bytes == 8, "MPI_INTEGER has %d bytes", bytes);
    OK(MPI_Type_size(MPI_DOUBLE_COMPLEX, &bytes));
    CHECK(bytes == 16, "MPI_DOUBLE_COMPLEX has %d bytes", bytes);
    OK(MPI_Type_size(MPI_REAL8, &bytes));
    CHECK(bytes == 8, "MPI_REAL8 has %d bytes", bytes);
    FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_REAL16, &bytes));
    FAILS(MPI_ERR_TYPE, MPI_Send(&sent, 1, MPI_REAL16, rank, 0, MPI_COMM_WORLD));
    OK(MPI_Type_size(MPI_INTEGER2, &bytes));   // nobody has said that it is missing
    CHECK(bytes == 2, "MPI_INTEGER2 has %d bytes", bytes);
    OK(MPI_Sendrecv(&sent, 1, MPI_INTEGER, rank, 0, &got, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == 5, "%ld came instead of 5", got);
    OK(MPI_Allreduce(&sent, &sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == 5L * size, "the sum is %ld", sum);
    OK(MPI_Abi_get_fortran_info(&info));
    CHECK(info != MPI_INFO_NULL, "the sizes that were told are forgotten");
    OK(MPI_Info_free(&info));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype triple, twelve, copy;
    int bytes, count;
    MPI_Aint lb, extent;
    OK(MPI_Type_size(MPI_DOUBLE, &bytes));
    CHECK(bytes == (int)sizeof(double), "MPI_DOUBLE has %d bytes", bytes);
    OK(MPI_Type_size(MPI_DOUBLE_INT, &bytes));
    CHECK(bytes == (int)(sizeof(double) + sizeof(int)), "MPI_DOUBLE_INT has %d bytes", bytes);
    OK(MPI_Type_get_extent(MPI_DOUBLE_INT, &lb, &extent));
    struct pair {
        double value;
        int index;
    };
    CHECK(lb == 0 && extent == (MPI_Aint)sizeof(struct pair), "MPI_DOUBLE_INT extends %ld", (long)extent);

    OK(MPI_Type_contiguous(3, MPI_INT, &triple));
    OK(MPI_Type_commit(&triple));
    OK(MPI_Type_contiguous(4, triple, &twelve));
    OK(MPI_Type_commit(&twelve));
    OK(MPI_Type_dup(twelve, &copy));
    OK(MPI_Type_free(&twelve));
    OK(MPI_Type_size(copy, &bytes));
    OK(MPI_Type_get_extent(copy, &lb, &extent));
    CHECK(bytes == 48 && lb == 0 && extent == 48, "size %d, lower bound %ld, extent %ld", bytes, (long)lb, (long)extent);

    int* values = malloc(sizeof(int) * 12 * 2000);
    if (size >= 2 && rank == 0) {
        for (int i = 0; i < 12 * 2000; i++) values[i] = i * 3;
        OK(MPI_Send(values, 2000, copy, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Send(values, 2, copy, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Send(values, 5, MPI_INT, 1, 0, MPI_COMM_WORLD));
        // A type that is freed while its message is under way.
        MPI_Request request;
        MPI_Datatype brief;
        OK(MPI_Type_contiguous(12 * 2000, MPI_INT, &brief));
        OK(MPI_Type_commit(&brief));
        OK(MPI_Isend(values, 1, brief, 1, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Type_free(&brief));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        MPI_Status s;
        OK(MPI_Recv(values, 12 * 2000, MPI_INT, 0, 0, MPI_COMM_WORLD, &s));
        OK(MPI_Get_count(&s, copy, &count));
        CHECK(count == 2000, "%d of 2000 elements", count);
        for (int i = 0; i < 12 * 2000; i++) CHECK(values[i] == i * 3, "value %d is %d", i, values[i]);
        OK(MPI_Recv(values, 8, triple, 0, 0, MPI_COMM_WORLD, &s));
        OK(MPI_Get_count(&s, triple, &count));
        CHECK(count == 8, "%d of 8 elements", count);
        OK(MPI_Recv(values, 8, triple, 0, 0, MPI_COMM_WORLD, &s));
        OK(MPI_Get_count(&s, triple, &count));
        CHECK(count == MPI_UNDEFINED, "5 integers are %d triples", count);
        OK(MPI_Get_elements(&s, triple, &count));
        CHECK(count == 5, "%d of 5 integers", count);
        OK(MPI_Recv(values, 12 * 2000, MPI_INT, 0, 0, MPI_COMM_WORLD, &s));
        CHECK(values[23999] == 23999 * 3, "the last value is %d", values[23999]);
    }
    free(values);
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_free(&triple));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &bytes));
    FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &copy));
    fortran_by_default();
    fortran();
    return finish();
}
