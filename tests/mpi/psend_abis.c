// MPI_Psend_init and MPI_Precv_init as programs in the field call them: by headers that declare the count as int, and by
// headers that declare it as MPI_Count. Of an int only the lower half of the register counts, the other holds anything.
#include "check.h"

#include <sys/mman.h>

// The other header's prototypes of the same symbols.
int count_psend_init(const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request*) __asm__("MPI_Psend_init");
int count_precv_init(void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request*) __asm__("MPI_Precv_init");
int count_pmpi_psend_init(const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request*) __asm__("PMPI_Psend_init");

static int left, right;

// Runs a pair once; true when so many bytes came.
static void run(MPI_Request r[2], int partitions, MPI_Count want) {
    MPI_Status s[2];
    MPI_Count got = -1;
    OK(MPI_Startall(2, r));
    OK(MPI_Pready_range(0, partitions - 1, r[1]));
    OK(MPI_Waitall(2, r, s));
    OK(MPI_Get_count_c(&s[0], MPI_BYTE, &got));
    CHECK(got == want, "%lld bytes, not %lld", (long long)got, (long long)want);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

// `dirt`: what an int's register holds above it.
static void small(MPI_Datatype type, int partitions, int count, int64_t dirt) {
    enum { room = 4096 };
    char out[room], in[room];
    MPI_Request r[2];
    int each;
    MPI_Type_size(type, &each);
    fill(out, room, (uint32_t)rank);
    memset(in, 0, room);
    int64_t in_register = (int64_t)((uint64_t)dirt << 32 | (uint32_t)count);
    OK(count_precv_init(in, partitions, in_register, type, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(count_psend_init(out, partitions, in_register, type, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    run(r, partitions, (MPI_Count)partitions * count * each);
    if (type == MPI_INT)
        CHECK(differs(in, (size_t)(partitions * count * each), (uint32_t)left) < 0, "%d partitions of %d", partitions, count);
}

static void both_headers(MPI_Datatype strided) {
    char out[100], in[100];
    MPI_Request r[2];
    fill(out, 100, (uint32_t)rank);
    OK(MPI_Precv_init(in, 5, 20, MPI_CHAR, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(count_pmpi_psend_init(out, 5, 20, MPI_CHAR, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    run(r, 5, 100);
    CHECK(differs(in, 100, (uint32_t)left) < 0, "one header here, the other there");
    const int64_t dirts[] = {0, 1, 2, 0x5555, 0x7fff, 0x12345678, 0x7fffffff, -1, -2, INT32_MIN};
    for (unsigned i = 0; i < sizeof dirts / sizeof dirts[0]; i++) {
        small(MPI_INT, 3, 50, dirts[i]);
        small(MPI_INT, 1, 0, dirts[i]);
        small(strided, 2, 40, dirts[i]);
    }
}

// One piece of memory mapped again and again: more than an int counts, in the space of a few megabytes.
static char* far_stretched(size_t bytes, size_t piece) {
    int fd = memfd_create("pieces", 0);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)piece) == 0, "no memory to map");
    char* base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED, "no address space");
    for (size_t at = 0; at < bytes; at += piece)
        CHECK(mmap(base + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED, "mapping");
    close(fd);
    return base;
}

static void large(void) {
    const size_t piece = (size_t)8 << 20, bytes = ((size_t)1 << 31) + piece;
    const MPI_Count count = (MPI_Count)bytes - 5;
    char *out = far_stretched(bytes, piece), *in = far_stretched(bytes, piece);
    MPI_Request r[2];
    fill(out, piece, (uint32_t)rank);
    OK(count_precv_init(in, 1, count, MPI_BYTE, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(count_psend_init(out, 1, count, MPI_BYTE, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    run(r, 1, count);
    CHECK(differs(in, piece, (uint32_t)left) < 0, "%zu bytes", bytes);
    munmap(out, bytes);
    munmap(in, bytes);
}

static void wrong(void) {
    char x[8];
    MPI_Request r;
    const int64_t negative[] = {-1, INT32_MIN, 0xffffffffll, 0x80000000ll, 0x1234ffffffffll, INT64_MIN + 0xfffffffell};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_COUNT, MPI_Psend_init(x, 1, -1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    for (unsigned i = 0; i < sizeof negative / sizeof negative[0]; i++) {
        FAILS(MPI_ERR_COUNT, count_psend_init(x, 1, negative[i], MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
        FAILS(MPI_ERR_COUNT, count_precv_init(x, 1, negative[i], MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    }
    FAILS(MPI_ERR_TYPE, count_psend_init(x, 1, 1ll << 40 | 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    FAILS(MPI_ERR_BUFFER, count_psend_init(NULL, 1, 1ll << 40 | 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Datatype strided;
    MPI_Type_create_resized(MPI_INT, 0, 12, &strided);
    MPI_Type_commit(&strided);
    both_headers(strided);
    large();
    wrong();
    MPI_Type_free(&strided);
    return finish();
}
