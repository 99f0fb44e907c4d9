// Messages to oneself, on MPI_COMM_SELF and on MPI_COMM_WORLD, and messages to nobody.
#include "check.h"

static void to_self(MPI_Comm comm, int me, int bytes) {
    char* out = malloc((size_t)bytes + 1);
    char* in = malloc((size_t)bytes + 1);
    MPI_Request requests[2];
    MPI_Status s;
    int count, flag;
    fill(out, (size_t)bytes, 3);

    MPI_Isend(out, bytes, MPI_BYTE, me, 1, comm, &requests[0]);
    MPI_Recv(in, bytes, MPI_BYTE, me, 1, comm, &s);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Get_count(&s, MPI_BYTE, &count);
    CHECK(count == bytes && s.MPI_SOURCE == me && s.MPI_TAG == 1, "Isend, Recv: %d of %d bytes", count, bytes);
    CHECK(differs(in, (size_t)bytes, 3) < 0, "Isend, Recv: %d bytes are wrong", bytes);

    memset(in, 0, (size_t)bytes);
    MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
    MPI_Send(out, bytes, MPI_BYTE, me, 2, comm);
    MPI_Wait(&requests[0], &s);
    CHECK(s.MPI_TAG == 2 && differs(in, (size_t)bytes, 3) < 0, "Irecv, Send: %d bytes are wrong", bytes);

    memset(in, 0, (size_t)bytes);
    MPI_Irecv(in, bytes, MPI_BYTE, me, 3, comm, &requests[0]);
    MPI_Ssend(out, bytes, MPI_BYTE, me, 3, comm);
    MPI_Wait(&requests[0], &s);
    CHECK(differs(in, (size_t)bytes, 3) < 0, "Irecv, Ssend: %d bytes are wrong", bytes);

    // A synchronous send to oneself waits for its receive.
    MPI_Issend(out, bytes, MPI_BYTE, me, 4, comm, &requests[0]);
    for (int i = 0; i < 20; i++) {
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "Issend was complete before its receive");
    }
    MPI_Iprobe(me, 4, comm, &flag, &s);
    CHECK(flag, "Iprobe does not see a message to oneself");
    memset(in, 0, (size_t)bytes);
    MPI_Irecv(in, bytes, MPI_BYTE, me, 4, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(differs(in, (size_t)bytes, 3) < 0, "Issend, Irecv: %d bytes are wrong", bytes);

    memset(in, 0, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, me, 5, in, bytes, MPI_BYTE, me, 5, comm, &s);
    CHECK(differs(in, (size_t)bytes, 3) < 0, "Sendrecv: %d bytes are wrong", bytes);
    MPI_Sendrecv_replace(in, bytes, MPI_BYTE, me, 6, me, 6, comm, &s);
    CHECK(differs(in, (size_t)bytes, 3) < 0, "Sendrecv_replace: %d bytes are wrong", bytes);
    free(out);
    free(in);
}

static void to_nobody(void) {
    int value = 77, flag, count;
    MPI_Request requests[2];
    MPI_Status s;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Rsend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_INT, &count);
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && count == 0, "Recv: %d %d %d", s.MPI_SOURCE, s.MPI_TAG, count);
    CHECK(value == 77, "a receive from nobody wrote into the buffer");
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], &s);
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG, "Irecv: %d %d", s.MPI_SOURCE, s.MPI_TAG);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &s);
    CHECK(flag && s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG, "Iprobe: %d %d %d", flag, s.MPI_SOURCE, s.MPI_TAG);
    MPI_Probe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &s);
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL, "Sendrecv: %d", s.MPI_SOURCE);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    static const int sizes[] = {0, 1, 8, 40, 64, 100, 4096, 8192, 10000, 65536, 70001, 2000000};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        to_self(MPI_COMM_SELF, 0, sizes[i]);
        to_self(MPI_COMM_WORLD, rank, sizes[i]);
    }
    to_nobody();
    return finish();
}
