// Wait and Test in all their forms, null and inactive requests, empty statuses, Request_free, Request_get_status.
#include "check.h"

static int is_empty(const MPI_Status* s) {
    int count = -1, cancelled = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    MPI_Test_cancelled(s, &cancelled);
    return s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

static void on_null_requests(void) {
    MPI_Request none = MPI_REQUEST_NULL, two[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status s, ss[2];
    int flag, index, count, indices[2];
    memset(&s, 1, sizeof s);
    MPI_Wait(&none, &s);
    CHECK(is_empty(&s), "Wait");
    memset(&s, 1, sizeof s);
    MPI_Test(&none, &flag, &s);
    CHECK(flag && is_empty(&s), "Test");
    MPI_Waitany(2, two, &index, &s);
    CHECK(index == MPI_UNDEFINED && is_empty(&s), "Waitany: %d", index);
    MPI_Testany(2, two, &index, &flag, &s);
    CHECK(flag && index == MPI_UNDEFINED && is_empty(&s), "Testany: %d %d", flag, index);
    MPI_Waitany(0, NULL, &index, &s);
    CHECK(index == MPI_UNDEFINED, "Waitany of none: %d", index);
    MPI_Waitsome(2, two, &count, indices, ss);
    CHECK(count == MPI_UNDEFINED, "Waitsome: %d", count);
    MPI_Testsome(2, two, &count, indices, ss);
    CHECK(count == MPI_UNDEFINED, "Testsome: %d", count);
    MPI_Waitall(2, two, ss);
    CHECK(is_empty(&ss[0]) && is_empty(&ss[1]), "Waitall");
    MPI_Testall(2, two, &flag, ss);
    CHECK(flag && is_empty(&ss[0]), "Testall");
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag, "Testall of none");
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &s);
    CHECK(flag && is_empty(&s), "Request_get_status");
}

enum { n = 24 };
static int values[n];
static MPI_Request requests[n];

// Rank 1 sends in a scrambled order; `how` is the call under test.
static void by(int how) {
    MPI_Status s, ss[n];
    int flag, index, count, indices[n], done = 0, seen[n] = {0};
    if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 500, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) {
            int k = i * 7 % n, value = 100 + k;
            MPI_Send(&value, 1, MPI_INT, 0, k, MPI_COMM_WORLD);
        }
    }
    if (rank != 0) return;
    for (int i = 0; i < n; i++) {
        values[i] = -1;
        if (i % 5 == 4) {  // null requests in between count as nothing
            requests[i] = MPI_REQUEST_NULL;
            continue;
        }
        MPI_Irecv(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Request skipped[n];
    int skipped_values[n], others = 0;
    for (int i = 4; i < n; i += 5, others++) MPI_Irecv(&skipped_values[others], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &skipped[others]);
    const int expected = n - others;
    MPI_Testany(n, requests, &index, &flag, &s);
    CHECK(!flag && index == MPI_UNDEFINED, "Testany finds something before anything was sent");
    MPI_Testsome(n, requests, &count, indices, ss);
    CHECK(count == 0, "Testsome finds %d before anything was sent", count);
    MPI_Send(NULL, 0, MPI_INT, 1, 500, MPI_COMM_WORLD);
    while (done < expected) {
        switch (how) {
            case 0:
                MPI_Waitany(n, requests, &index, &s);
                CHECK(index >= 0 && index < n && requests[index] == MPI_REQUEST_NULL, "Waitany: index %d", index);
                CHECK(s.MPI_TAG == index && s.MPI_SOURCE == 1, "Waitany: tag %d at %d", s.MPI_TAG, index);
                seen[index]++, done++;
                break;
            case 1:
                MPI_Testany(n, requests, &index, &flag, &s);
                if (flag) {
                    CHECK(index >= 0 && s.MPI_TAG == index, "Testany: tag %d at %d", s.MPI_TAG, index);
                    seen[index]++, done++;
                }
                break;
            case 2:
                MPI_Waitsome(n, requests, &count, indices, ss);
                CHECK(count >= 1, "Waitsome: %d", count);
                for (int i = 0; i < count; i++) {
                    CHECK(ss[i].MPI_TAG == indices[i], "Waitsome: tag %d at %d", ss[i].MPI_TAG, indices[i]);
                    seen[indices[i]]++, done++;
                }
                break;
            case 3:
                MPI_Testsome(n, requests, &count, indices, ss);
                for (int i = 0; i < count; i++) {
                    CHECK(ss[i].MPI_TAG == indices[i], "Testsome: tag %d at %d", ss[i].MPI_TAG, indices[i]);
                    seen[indices[i]]++, done++;
                }
                break;
            case 4:
            case 5:
                flag = 1;
                if (how == 4) MPI_Waitall(n, requests, ss);
                else MPI_Testall(n, requests, &flag, ss);
                if (!flag) break;
                for (int i = 0; i < n; i++) {
                    if (i % 5 == 4) {
                        CHECK(is_empty(&ss[i]), "the status of a null request is not empty");
                        continue;
                    }
                    CHECK(ss[i].MPI_TAG == i && ss[i].MPI_SOURCE == 1, "status %d has tag %d", i, ss[i].MPI_TAG);
                    seen[i]++, done++;
                }
                break;
        }
    }
    for (int i = 0; i < n; i++) {
        CHECK(seen[i] == (i % 5 == 4 ? 0 : 1), "request %d was reported %d times", i, seen[i]);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is left", i);
        CHECK(i % 5 == 4 || values[i] == 100 + i, "value %d is %d", i, values[i]);
    }
    MPI_Waitall(others, skipped, MPI_STATUSES_IGNORE);
}

static void freed_and_asked(int bytes) {
    char* buf = malloc((size_t)bytes + 1);
    int flag;
    MPI_Request request;
    MPI_Status s;
    if (rank == 0) {
        // The request is freed while its message is on the way; the message arrives all the same.
        fill(buf, (size_t)bytes, 5);
        MPI_Isend(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL, "Request_free leaves the handle");
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        // Request_get_status may be asked again and again; the request stays.
        MPI_Irecv(buf, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        do MPI_Request_get_status(request, &flag, &s);
        while (!flag);
        CHECK(request != MPI_REQUEST_NULL && s.MPI_TAG == 1, "tag %d", s.MPI_TAG);
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        CHECK(flag, "a complete request became incomplete");
        MPI_Test(&request, &flag, &s);
        CHECK(flag && request == MPI_REQUEST_NULL, "Test after Request_get_status");
        CHECK(differs(buf, (size_t)bytes, 5) < 0, "%d bytes are wrong", bytes);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(buf);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    on_null_requests();
    for (int round = 0; round < 20; round++)
        for (int how = 0; how < 6; how++) by(how);
    MPI_Barrier(MPI_COMM_WORLD);
    freed_and_asked(8);
    freed_and_asked(5000);
    freed_and_asked(300000);
    return finish();
}
