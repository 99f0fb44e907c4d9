// A synchronous send is complete only when its receive has started, whatever the size: it must stay incomplete while the
// receiver polls for something else, and complete soon after the match even if the data is large.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
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
