// Sendrecv and Sendrecv_replace around a ring and between pairs, at all sizes, with ends that are MPI_PROC_NULL.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    static const int sizes[] = {0, 4, 40, 41, 1000, 8192, 20000, 65537, 1000003};
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < 9; i++) {
        const int bytes = sizes[i];
        char* out = malloc((size_t)bytes + 1);
        char* in = malloc((size_t)bytes + 1);
        MPI_Status s;
        int count;
        fill(out, (size_t)bytes, (uint32_t)rank);
        MPI_Sendrecv(out, bytes, MPI_BYTE, right, i, in, bytes, MPI_BYTE, left, i, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &count);
        CHECK(count == bytes && s.MPI_SOURCE == left, "%d bytes from %d", count, s.MPI_SOURCE);
        CHECK(differs(in, (size_t)bytes, (uint32_t)left) < 0, "%d bytes from %d are wrong", bytes, left);

        // Different sizes in the two directions.
        const int shorter = bytes / 2;
        MPI_Sendrecv(out, rank % 2 ? bytes : shorter, MPI_BYTE, right, 20, in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &count);
        CHECK(count == (left % 2 ? bytes : shorter), "%d bytes from %d", count, left);
        CHECK(differs(in, (size_t)count, (uint32_t)left) < 0, "bytes from %d are wrong", left);
        MPI_Barrier(MPI_COMM_WORLD);

        for (int k = 0; k < size; k++) MPI_Sendrecv_replace(out, bytes, MPI_BYTE, right, 30, left, 30, MPI_COMM_WORLD, &s);
        CHECK(differs(out, (size_t)bytes, (uint32_t)rank) < 0, "%d bytes are wrong after going round the ring", bytes);

        // A line instead of a ring: its ends talk to nobody.
        const int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
        MPI_Sendrecv_replace(out, bytes, MPI_BYTE, up, 40, down, 40, MPI_COMM_WORLD, &s);
        CHECK(s.MPI_SOURCE == down, "source %d", s.MPI_SOURCE);
        CHECK(differs(out, (size_t)bytes, (uint32_t)(rank > 0 ? rank - 1 : 0)) < 0, "%d bytes are wrong at %d", bytes, rank);
        free(out);
        free(in);
    }
    return finish();
}
