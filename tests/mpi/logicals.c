// Reductions of Fortran's LOGICAL where .TRUE. and .FALSE. have bit patterns of their own, which a Fortran layer tells.
// Arguments: the patterns.
#include "check.h"

static long long yes, no;

static void put(unsigned char* at, int bytes, int truth) {
    long long v = truth ? yes : no;
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(i < 8 ? v >> (8 * i) : v < 0 ? 0xff : 0);
}

// Everybody's value number i is true where bit `rank` of i is set: all combinations there are.
static void reduce(MPI_Datatype type, MPI_Op op, const char* name) {
    enum { most = 256 };
    unsigned char own[16 * most], got[16 * most], want[16];
    int bytes, n = 1 << size;
    MPI_Type_size(type, &bytes);
    for (int i = 0; i < n; i++) put(own + i * bytes, bytes, i >> rank & 1);
    OK(MPI_Allreduce(own, got, n, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++) {
        int trues = __builtin_popcount((unsigned)i);
        put(want, bytes, op == MPI_LAND ? trues == size : op == MPI_LOR ? trues > 0 : trues % 2);
        CHECK(memcmp(got + i * bytes, want, (size_t)bytes) == 0, "%s of %d bytes, case %d: first byte %x, not %x", name, bytes, i, got[i * bytes], want[0]);
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(argc == 3 && size <= 8, "arguments: the patterns of .TRUE. and .FALSE.");
    yes = strtoll(argv[1], NULL, 0), no = strtoll(argv[2], NULL, 0);
    int t = (int)yes, f = (int)no, set = -1, got_t = 0, got_f = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Abi_get_fortran_booleans(4, &got_t, &got_f, &set));
    CHECK(set == 0, "nobody has told");
    FAILS(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(3, &t, &f));
    OK(MPI_Abi_set_fortran_booleans(4, &t, &f));
    OK(MPI_Abi_get_fortran_booleans(4, &got_t, &got_f, &set));
    CHECK(set == 1 && got_t == t && got_f == f, "%d %x %x", set, (unsigned)got_t, (unsigned)got_f);
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(4, &t, &f));
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_logical_size", "4");
    MPI_Info_set(info, "mpi_integer_size", "4");
    MPI_Info_set(info, "mpi_real_size", "4");
    MPI_Info_set(info, "mpi_double_precision_size", "8");
    const char* keys[] = {"mpi_logical1_supported", "mpi_logical2_supported", "mpi_logical4_supported", "mpi_logical8_supported", "mpi_logical16_supported"};
    for (int i = 0; i < 5; i++) MPI_Info_set(info, keys[i], "true");
    OK(MPI_Abi_set_fortran_info(info));
    MPI_Info_free(&info);
    const MPI_Datatype types[] = {MPI_LOGICAL, MPI_LOGICAL1, MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8, MPI_LOGICAL16};
    for (int i = 0; i < 6; i++) {
        reduce(types[i], MPI_LAND, "LAND");
        reduce(types[i], MPI_LOR, "LOR");
        reduce(types[i], MPI_LXOR, "LXOR");
    }
    return finish();
}
