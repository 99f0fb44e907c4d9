// A synchronous send is complete only when its receive has started, whatever the size: it must stay incomplete while the
// receiver polls for something else, and complete soon after the match even if the data is large.
#include "check.h"

// Behind a message that fills the ring, a synchronous one is matched while most of it is still to be sent: its buffer
// is the sender's again only when all of it has left.
static void matched_half_way(void) {
    enum { ints = 50000, rounds = 50 };
    int* front = malloc(ints * sizeof(int));
    int* back = malloc(ints * sizeof(int));
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            MPI_Request request;
            fill((char*)front, ints * sizeof(int), (uint32_t)i);
            fill((char*)back, ints * sizeof(int), (uint32_t)i + 1000);
            MPI_Isend(front, ints, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);
            MPI_Ssend(back, ints, MPI_INT, 1, 5, MPI_COMM_WORLD);
            memset(back, 0, ints * sizeof(int));
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            // In one half of the rounds both are posted; in the other, the second comes without a receive.
            MPI_Request request;
            MPI_Irecv(front, ints, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
            if (i % 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Recv(back, ints, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(differs((char*)front, ints * sizeof(int), (uint32_t)i) < 0, "round %d: the first message is wrong", i);
            CHECK(differs((char*)back, ints * sizeof(int), (uint32_t)i + 1000) < 0, "round %d: the synchronous message is wrong", i);
        }
    }
    free(front);
    free(back);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    matched_half_way();
    static const int sizes[] = {0, 8, 40, 500, 8000, 70000, 2000000};
    for (int i = 0; i < 7; i++) {
        char* buf = malloc((size_t)sizes[i] + 1);
        if (rank == 0) {
            MPI_Request request;
            int flag = 0, tests = 0;
            fill(buf, (size_t)sizes[i], (uint32_t)i);
            MPI_Issend(buf, sizes[i], MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
            // The receiver sits in MPI, waiting for tag 3, and has not asked for tag 1.
            for (double until = seconds() + 0.05; seconds() < until || tests < 100; tests++) {
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                CHECK(!flag, "a synchronous send of %d bytes was complete before its receive", sizes[i]);
            }
            MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(buf, sizes[i], MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(differs(buf, (size_t)sizes[i], (uint32_t)i) < 0, "%d bytes are wrong", sizes[i]);
        }
        free(buf);
    }
    return finish();
}
