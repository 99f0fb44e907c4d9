// Matching: messages between two ranks do not overtake each other, tags select, wildcards take the first that fits, and
// communicators are separate worlds. Any number of ranks from 2; rank 0 receives from all the others.
#include "check.h"

enum { many = 500 };

static void in_order_by_any_source(void) {
    if (rank == 0) {
        int* next = calloc((size_t)size, sizeof *next);
        for (int i = 0; i < many * (size - 1); i++) {
            int value;
            MPI_Status s;
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
            CHECK(s.MPI_SOURCE > 0 && s.MPI_SOURCE < size, "source %d", s.MPI_SOURCE);
            CHECK(value == next[s.MPI_SOURCE], "rank %d's message %d came as number %d", s.MPI_SOURCE, value, next[s.MPI_SOURCE]);
            CHECK(s.MPI_TAG == value % 13, "tag %d", s.MPI_TAG);
            next[s.MPI_SOURCE]++;
        }
        free(next);
    } else {
        for (int i = 0; i < many; i++) MPI_Send(&i, 1, MPI_INT, 0, i % 13, MPI_COMM_WORLD);
    }
}

// Sizes that take different protocols must not overtake either.
static void in_order_across_protocols(void) {
    static const int sizes[] = {4, 100000, 48, 1000000, 4, 9000, 64, 300000, 4};
    enum { n = sizeof sizes / sizeof *sizes };
    MPI_Request requests[n];
    char* buffers[n];
    for (int i = 0; i < n; i++) buffers[i] = malloc((size_t)sizes[i]);
    for (int round = 0; round < 5; round++) {
        if (rank == 1) {
            for (int i = 0; i < n; i++) {
                fill(buffers[i], (size_t)sizes[i], (uint32_t)(i + round));
                MPI_Isend(buffers[i], sizes[i], MPI_BYTE, 0, 5, MPI_COMM_WORLD, &requests[i]);
            }
            MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 0) {
            for (int i = 0; i < n; i++) {
                int count;
                MPI_Status s;
                MPI_Probe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
                MPI_Get_count(&s, MPI_BYTE, &count);
                CHECK(count == sizes[i], "message %d has %d bytes instead of %d", i, count, sizes[i]);
                MPI_Recv(buffers[i], count, MPI_BYTE, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(differs(buffers[i], (size_t)count, (uint32_t)(i + round)) < 0, "message %d is wrong", i);
            }
        }
    }
    for (int i = 0; i < n; i++) free(buffers[i]);
}

// Tags are received backwards; within a tag the order holds.
static void tags_select(void) {
    enum { tags = 16, each = 20 };
    if (rank == 1) {
        for (int i = 0; i < each; i++)
            for (int tag = 0; tag < tags; tag++) {
                int value = i * 1000 + tag;
                MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
            }
    } else if (rank == 0) {
        for (int tag = tags - 1; tag >= 0; tag--)
            for (int i = 0; i < each; i++) {
                int value;
                MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(value == i * 1000 + tag, "tag %d, number %d: got %d", tag, i, value);
            }
    }
}

// Receives are matched in the order in which they were posted, specific and wildcard alike.
static void posted_order(void) {
    enum { n = 6 };
    static const int want_tag[n] = {3, MPI_ANY_TAG, 4, MPI_ANY_TAG, 3, MPI_ANY_TAG};
    static const int sent[n] = {4, 3, 9, 3, 4, 8};
    // By hand: 3 takes the 2nd; any takes the 1st (4); 4 takes the 5th; any takes the 3rd (9); 3 the 4th; any the 6th.
    static const int expected[n] = {1, 0, 4, 2, 3, 5};
    if (rank == 0) {
        int values[n];
        MPI_Request requests[n];
        MPI_Status statuses[n];
        for (int i = 0; i < n; i++) MPI_Irecv(&values[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1, want_tag[i], MPI_COMM_WORLD, &requests[i]);
        MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Waitall(n, requests, statuses);
        for (int i = 0; i < n; i++) {
            CHECK(values[i] == expected[i], "receive %d got message %d, not %d", i, values[i], expected[i]);
            CHECK(statuses[i].MPI_TAG == sent[values[i]], "receive %d has tag %d", i, statuses[i].MPI_TAG);
        }
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) MPI_Send(&i, 1, MPI_INT, 0, sent[i], MPI_COMM_WORLD);
    }
}

static void communicators_are_apart(void) {
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    int a = 1, b = 2, got = 0;
    if (rank == 1) {
        MPI_Send(&a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Send(&b, 1, MPI_INT, 0, 0, other);
    } else if (rank == 0) {
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
        CHECK(got == 2, "the duplicate received the message of the world");
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == 1, "the world received the message of the duplicate");
    }
    MPI_Comm_free(&other);
    CHECK(other == MPI_COMM_NULL, "MPI_Comm_free leaves the handle");
}

// The largest tag there is.
static void largest_tag(void) {
    int *limit, flag, value = 42;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
    CHECK(flag && *limit >= 32767, "MPI_TAG_UB");
    if (rank == 1) {
        MPI_Send(&value, 1, MPI_INT, 0, *limit, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Status s;
        MPI_Recv(&value, 1, MPI_INT, 1, *limit, MPI_COMM_WORLD, &s);
        CHECK(s.MPI_TAG == *limit, "tag %d", s.MPI_TAG);
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size >= 2, "two ranks are needed");
    in_order_by_any_source();
    MPI_Barrier(MPI_COMM_WORLD);
    in_order_across_protocols();
    MPI_Barrier(MPI_COMM_WORLD);
    tags_select();
    MPI_Barrier(MPI_COMM_WORLD);
    posted_order();
    MPI_Barrier(MPI_COMM_WORLD);
    communicators_are_apart();
    largest_tag();
    return finish();
}
