// Messages of more than 4 GiB, which take no memory: a small file is mapped again and again on both sides. Places of
// their own, around 2 GiB, around 4 GiB and at the end, tell a message that went wrong from one that went right.
#include <sys/mman.h>

#include "check.h"

static const size_t gib = (size_t)1 << 30, period = (size_t)16 << 20, window = (size_t)1 << 20;
static const size_t bytes = ((size_t)4 << 30) + ((size_t)48 << 20) + 12347;
enum { windows = 3 };
static size_t place_of(int w) {
    return w == 0 ? 2 * gib - window / 2 : w == 1 ? 4 * gib - window / 2 : bytes - window + 1;
}

static char* map_it(void) {
    const int fd = memfd_create("large_count", 0);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)period) == 0, "no file in memory");
    const size_t length = (bytes + period) / period * period;
    char* base = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED, "no room for %zu bytes of addresses", length);
    for (size_t at = 0; at < length; at += period)
        CHECK(mmap(base + at, period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED, "mmap");
    close(fd);
    for (int w = 0; w < windows; w++) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        char* at = base + place_of(w) / 4096 * 4096;
        CHECK(mmap(at, window + 4096, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED, "mmap");
    }
    return base;
}

// The file's content first: windows lie over it.
static void write_all(char* base, uint32_t id) {
    fill(base, period, id);
    for (int w = 0; w < windows; w++) fill(base + place_of(w), window - 1, id + 1 + (uint32_t)w);
}

static void check_all(const char* base, uint32_t id) {
    CHECK(differs(base, period, id) < 0, "the repeated part, at %ld", differs(base, period, id));
    for (int w = 0; w < windows; w++) {
        const long at = differs(base + place_of(w), window - 1, id + 1 + (uint32_t)w);
        CHECK(at < 0, "at %zu + %ld", place_of(w), at);
    }
    CHECK(base[bytes] == 0x55, "the byte behind the message was written");
}

static void check_status(const MPI_Status* s, int tag) {
    MPI_Count count = -1, elements = -1;
    int narrow = 0;
    OK(MPI_Get_count_c(s, MPI_BYTE, &count));
    CHECK((size_t)count == bytes && s->MPI_SOURCE == 0 && s->MPI_TAG == tag, "%lld bytes from %d", (long long)count,
          s->MPI_SOURCE);
    OK(MPI_Get_elements_c(s, MPI_BYTE, &elements));
    CHECK((size_t)elements == bytes, "%lld elements", (long long)elements);
    OK(MPI_Get_count(s, MPI_BYTE, &narrow));
    CHECK(narrow == MPI_UNDEFINED, "a count of %d in an int", narrow);
    OK(MPI_Get_count_c(s, MPI_INT, &count));
    CHECK(bytes % 4 == 0 || count == MPI_UNDEFINED, "%lld whole ints", (long long)count);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size == 2, "two ranks");
    char* base = map_it();
    MPI_Status s;
    if (rank == 0) {
        write_all(base, 10);
        OK(MPI_Send_c(base, (MPI_Count)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else {
        base[bytes] = 0x55;
        MPI_Message m;
        OK(MPI_Mprobe(0, 1, MPI_COMM_WORLD, &m, &s));
        check_status(&s, 1);
        OK(MPI_Mrecv_c(base, (MPI_Count)bytes, MPI_BYTE, &m, &s));
        check_status(&s, 1);
        check_all(base, 10);
    }
    // The same as a few elements of a large type, by a persistent receive that is there first.
    MPI_Datatype third;
    CHECK(bytes % 3 == 0, "three equal parts");
    OK(MPI_Type_contiguous_c((MPI_Count)(bytes / 3), MPI_BYTE, &third));
    OK(MPI_Type_commit(&third));
    if (rank == 0) {
        write_all(base, 20);
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &s));
        OK(MPI_Send(base, 3, third, 1, 2, MPI_COMM_WORLD));
    } else {
        MPI_Request r;
        OK(MPI_Recv_init_c(base, (MPI_Count)bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &r));
        OK(MPI_Start(&r));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD));
        OK(MPI_Wait(&r, &s));
        OK(MPI_Request_free(&r));
        check_status(&s, 2);
        check_all(base, 20);
        int count = -1;
        OK(MPI_Get_count(&s, third, &count));
        CHECK(count == 3, "%d thirds", count);
    }
    OK(MPI_Type_free(&third));
    return finish();
}
