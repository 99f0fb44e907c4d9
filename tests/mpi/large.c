// Large messages: up to 64 MiB (or `large MIB`), odd sizes, unaligned at both ends, both ways at once, posted before and after,
// with the other side inside MPI or computing. CHECK_MEMORY chooses the memory of what is sent and of what is received (check.h).
#include "check.h"

static char *out, *in;

static void exchange(size_t bytes, int from, int to, int how, uint32_t id) {
    const int peer = 1 - rank;
    MPI_Request requests[2];
    fill(out + from, bytes, id + (uint32_t)rank);
    in[to + (long)bytes] = 0x5a;
    if (to > 0) in[to - 1] = 0x5a;
    switch (how) {
        case 0:  // one after the other
            if (rank == 0) MPI_Send(out + from, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in + to, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(out + from, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            break;
        case 1:  // receives posted first, both ways at once
            MPI_Irecv(in + to, (int)bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out + from, (int)bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            break;
        case 2:  // sends first; one side is late
            MPI_Isend(out + from, (int)bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[1]);
            if (rank == 0) sleep_ms(10);
            MPI_Irecv(in + to, (int)bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[0]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            break;
    }
    long at = differs(in + to, bytes, id + (uint32_t)peer);
    CHECK(at < 0, "%zu bytes, way %d: byte %ld is wrong", bytes, how, at);
    CHECK(in[to + (long)bytes] == 0x5a, "%zu bytes: the byte behind was written", bytes);
    CHECK(to == 0 || in[to - 1] == 0x5a, "%zu bytes: the byte before was written", bytes);
}

// Many large messages under way at the same time, received in another order than sent.
static void crowd(void) {
    enum { n = 12, bytes = 300001 };
    MPI_Request requests[2 * n];
    for (int i = 0; i < n; i++) {
        fill(out + i * bytes, bytes, (uint32_t)(i + rank));
        MPI_Isend(out + i * bytes, bytes, MPI_BYTE, 1 - rank, 50 + i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < n; i++) {
        int k = n - 1 - i;
        MPI_Irecv(in + k * bytes, bytes, MPI_BYTE, 1 - rank, 50 + k, MPI_COMM_WORLD, &requests[n + i]);
    }
    MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) CHECK(differs(in + i * bytes, bytes, (uint32_t)(i + 1 - rank)) < 0, "message %d of the crowd is wrong", i);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size == 2, "two ranks are needed");
    const size_t most = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
    out = new_buffer(most + 64);
    in = new_buffer(most + 64);
    const size_t sizes[] = {65536, 65537, 99999, 131071, 262144, 1048575, 1048577, 3000001, 4194304, 16777213, most - 1, most};
    uint32_t id = 0;
    for (int i = 0; i < 12; i++)
        for (int how = 0; how < 3; how++, id++) {
            if (sizes[i] > most) continue;
            exchange(sizes[i], 0, 0, how, id);
            if (sizes[i] < 10000000) exchange(sizes[i], 1 + (int)(id % 7), 3, how, id);
        }
    if (most >= 12u * 300001u) crowd();
    free_buffer(out);
    free_buffer(in);
    return finish();
}
