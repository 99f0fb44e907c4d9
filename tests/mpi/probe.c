// Probe and Iprobe: what they report is what the next matching receive gets; probing makes progress; a probe by wildcard
// says who and what, and leaves the message where it is.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size >= 2, "two ranks are needed");
    int flag, count;
    MPI_Status s, t;
    if (rank == 0) {
        // Nothing there: Iprobe says so, and the status it leaves is not written by it.
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, &s);
        CHECK(!flag, "Iprobe found a message that nobody sent");
        MPI_Barrier(MPI_COMM_WORLD);
        static const int sizes[] = {0, 4, 40, 400, 5000, 70000, 1000000};
        char* buf = malloc(1000000);
        for (int from = 1; from < size; from++)
            for (int i = 0; i < 7; i++) {
                // All with one tag: each probe must show the oldest.
                do MPI_Iprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &s);
                while (!flag);
                MPI_Probe(from, 3, MPI_COMM_WORLD, &t);
                MPI_Get_count(&s, MPI_BYTE, &count);
                CHECK(count == sizes[i] && s.MPI_SOURCE == from && s.MPI_TAG == 3, "Iprobe shows %d bytes of %d", count, sizes[i]);
                MPI_Get_count(&t, MPI_BYTE, &count);
                CHECK(count == sizes[i] && t.MPI_SOURCE == from && t.MPI_TAG == 3, "Probe shows %d bytes of %d", count, sizes[i]);
                MPI_Recv(buf, count, MPI_BYTE, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, &t);
                CHECK(differs(buf, (size_t)count, (uint32_t)(from + i)) < 0, "message %d of rank %d is wrong", i, from);
            }
        // By wildcard: whoever is found is received from.
        for (int k = 1; k < size; k++) {
            MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &s);
            int value;
            MPI_Recv(&value, 1, MPI_INT, s.MPI_SOURCE, 4, MPI_COMM_WORLD, &t);
            CHECK(value == s.MPI_SOURCE && t.MPI_SOURCE == s.MPI_SOURCE, "probed rank %d, received %d", s.MPI_SOURCE, value);
        }
        // A posted receive takes the message; a probe behind it must not see it.
        int value = 0;
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_INT, 1, 6, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iprobe(1, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a probe sees a message that a posted receive has taken");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(value == 5, "value %d", value);
        free(buf);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        static const int sizes[] = {0, 4, 40, 400, 5000, 70000, 1000000};
        char* buf = malloc(1000000);
        for (int i = 0; i < 7; i++) {
            fill(buf, (size_t)sizes[i], (uint32_t)(rank + i));
            MPI_Send(buf, sizes[i], MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        }
        MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            int five = 5;
            MPI_Send(&five, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
            MPI_Send(NULL, 0, MPI_INT, 0, 7, MPI_COMM_WORLD);
        }
        free(buf);
    }
    return finish();
}
