// Every kind of send against every kind of receive, at sizes around each limit between protocols, aligned or not;
// contents, statuses and counts are checked, and nothing outside the message may be touched.
#include "check.h"

enum { send_kinds = 6, recv_kinds = 3 };
static const char* const send_names[send_kinds] = {"Send", "Ssend", "Isend", "Issend", "Rsend", "Irsend"};

static void post(int kind, const void* buf, int bytes, int peer, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    switch (kind) {
        case 0: MPI_Send(buf, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD); return;
        case 1: MPI_Ssend(buf, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD); return;
        case 2: MPI_Isend(buf, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request); break;
        case 3: MPI_Issend(buf, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request); break;
        case 4: MPI_Rsend(buf, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD); return;
        case 5: MPI_Irsend(buf, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request); break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL, "%s: the request outlives MPI_Wait", send_names[kind]);
}

static void check_message(const unsigned char* area, int offset, int bytes, uint32_t id, const MPI_Status* s, int tag) {
    int count = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    CHECK(s->MPI_SOURCE == 0 && s->MPI_TAG == tag, "source %d tag %d, not 0 and %d", s->MPI_SOURCE, s->MPI_TAG, tag);
    CHECK(count == bytes, "count %d of %d", count, bytes);
    long at = differs(area + offset, (size_t)bytes, id);
    CHECK(at < 0, "byte %ld of %d is wrong", at, bytes);
    for (int i = 0; i < offset; i++) CHECK(area[i] == 0xee, "byte %d before the message was written", offset - i);
    for (int i = 0; i < 16; i++) CHECK(area[offset + bytes + i] == 0xee, "byte %d behind the message was written", i);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size >= 2, "two ranks are needed");
    static const int sizes[] = {0, 1, 7, 8, 31, 32, 39, 40, 41, 47, 48, 49, 63, 64, 65, 127, 128, 255, 511, 1000, 1024, 2047, 4095,
                                4096, 4097, 8191, 8192, 8193, 12345, 16384, 16385, 32768, 65535, 65536, 65537, 131072, 262145,
                                1048577};
    const int n = (int)(sizeof sizes / sizeof *sizes), most = sizes[n - 1];
    unsigned char* area = malloc((size_t)most + 64);
    uint32_t id = 0;
    for (int i = 0; i < n; i++)
        for (int kind = 0; kind < send_kinds; kind++)
            for (int how = 0; how < recv_kinds; how++, id++) {
                const int bytes = sizes[i], offset = (int)(id % 5), tag = (int)(id % 1000);
                if (rank == 0) {
                    fill(area + offset, (size_t)bytes, id);
                    // A ready send needs its receive posted: the receiver says so.
                    if (kind >= 4 || how == 2) MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    post(kind, area + offset, bytes, 1, tag);
                } else if (rank == 1) {
                    MPI_Status s;
                    memset(area, 0xee, (size_t)bytes + 64);
                    if (kind >= 4 || how == 2) {
                        MPI_Request request;
                        MPI_Irecv(area + offset, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
                        MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
                        MPI_Wait(&request, &s);
                    } else if (how == 0) {
                        MPI_Recv(area + offset, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &s);
                    } else {
                        MPI_Status probed;
                        MPI_Probe(0, tag, MPI_COMM_WORLD, &probed);
                        int count;
                        MPI_Get_count(&probed, MPI_BYTE, &count);
                        CHECK(count == bytes, "%s: probed %d of %d bytes", send_names[kind], count, bytes);
                        MPI_Recv(area + offset, count, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
                    }
                    check_message(area, offset, bytes, id, &s, tag);
                }
            }
    free(area);
    return finish();
}
