// A message longer than its receive is MPI_ERR_TRUNCATE, whichever protocol carries it, posted before or after; the part
// that fits may be written, nothing behind it; the sender does not notice and the next message is whole.
#include "check.h"

static void one(int sent, int room, int posted_first, int through_wait) {
    char* buf = malloc((size_t)sent + 64);
    if (rank == 0) {
        fill(buf, (size_t)sent, 9);
        if (posted_first) MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(MPI_Send(buf, sent, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
        OK(MPI_Send(buf, sent, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
    } else if (rank == 1) {
        memset(buf, 0xee, (size_t)sent + 64);
        int code;
        MPI_Status s;
        if (posted_first || through_wait) {
            MPI_Request request;
            if (!posted_first) MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Irecv(buf, room, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
            if (posted_first) MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            code = MPI_Wait(&request, &s);
            CHECK(request == MPI_REQUEST_NULL, "a failed receive keeps its request");
        } else {
            MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            code = MPI_Recv(buf, room, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &s);
        }
        FAILS(MPI_ERR_TRUNCATE, code);
        for (int i = room; i < sent + 64; i++) CHECK((unsigned char)buf[i] == 0xee, "%d bytes into %d: byte %d was written", sent, room, i);
        OK(MPI_Recv(buf, sent, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &s));
        CHECK(differs(buf, (size_t)sent, 9) < 0, "the message after a truncated one is wrong (%d bytes)", sent);
    }
    free(buf);
}

// In MPI_Waitall the failed one is named by its status.
static void among_others(void) {
    int values[3] = {1, 2, 3};
    MPI_Request requests[3];
    MPI_Status statuses[3];
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(MPI_Send(values, 1, MPI_INT, 1, 10, MPI_COMM_WORLD));
        OK(MPI_Send(values, 2, MPI_INT, 1, 11, MPI_COMM_WORLD));
        OK(MPI_Send(values, 1, MPI_INT, 1, 12, MPI_COMM_WORLD));
    } else if (rank == 1) {
        for (int i = 0; i < 3; i++) MPI_Irecv(&values[i], 1, MPI_INT, 0, 10 + i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        int done = 0;
        while (done < 3) {
            int code = MPI_Waitall(3, requests, statuses);
            if (code == MPI_SUCCESS) break;
            FAILS(MPI_ERR_IN_STATUS, code);
            done = 0;
            for (int i = 0; i < 3; i++) {
                if (statuses[i].MPI_ERROR == MPI_ERR_PENDING) continue;
                done++;
                int class = MPI_SUCCESS;
                MPI_Error_class(statuses[i].MPI_ERROR, &class);
                if (requests[i] == MPI_REQUEST_NULL && i == 1 && class != MPI_SUCCESS)
                    CHECK(class == MPI_ERR_TRUNCATE, "status %d has class %d", i, class);
                if (i != 1) CHECK(class == MPI_SUCCESS, "status %d has class %d", i, class);
            }
        }
        CHECK(values[0] == 1 && values[2] == 1, "the whole messages are wrong");
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    static const int sizes[][2] = {{8, 4}, {8, 0}, {40, 39}, {64, 40}, {500, 100}, {4096, 4095}, {9000, 1}, {20000, 12000},
                                   {70000, 69999}, {70000, 0}, {1000000, 500001}, {3000000, 100}};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        for (int how = 0; how < 3; how++) one(sizes[i][0], sizes[i][1], how == 0, how == 1);
    MPI_Barrier(MPI_COMM_WORLD);
    among_others();
    return finish();
}
