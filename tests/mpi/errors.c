// Error handlers that return, that are the user's own, and what they are told; wrong arguments give the right class and
// leave everything usable.
#include "check.h"

static int calls, last_class;
static MPI_Comm last_comm;
static void handler(MPI_Comm* comm, int* code, ...) {
    calls++;
    last_comm = *comm;
    MPI_Error_class(*code, &last_class);
}

static void classes(void) {
    char buf[8] = {0};
    int flag;
    MPI_Request request = MPI_REQUEST_NULL;
    FAILS(MPI_ERR_COMM, MPI_Send(buf, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL));
    FAILS(MPI_ERR_COUNT, MPI_Send(buf, -1, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Send(buf, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(buf, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(buf, 1, MPI_BYTE, -77, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(buf, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Send(buf, 1, MPI_BYTE, 0, -5, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Send(buf, 1, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Recv(buf, 1, MPI_BYTE, 0, -5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_RANK, MPI_Irecv(buf, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL, "a failed call wrote its output");
    FAILS(MPI_ERR_ROOT, MPI_Bcast(buf, 1, MPI_BYTE, size, MPI_COMM_WORLD));
    FAILS(MPI_ERR_OP, MPI_Allreduce(buf, buf + 4, 1, MPI_BYTE, MPI_OP_NULL, MPI_COMM_WORLD));
    FAILS(MPI_ERR_ARG, MPI_Comm_rank(MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&request));
    FAILS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &flag));
    // An uncommitted type cannot be sent.
    MPI_Datatype type;
    OK(MPI_Type_contiguous(2, MPI_BYTE, &type));
    FAILS(MPI_ERR_TYPE, MPI_Send(buf, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_commit(&type));
    OK(MPI_Send(buf, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_free(&type));
    CHECK(type == MPI_DATATYPE_NULL, "Type_free leaves the handle");
}

// Where MPI_IN_PLACE has no meaning, and where a null pointer is no place for bytes.
static void no_buffers(void) {
    char buf[64] = {0}, out[64];
    const MPI_Comm c = MPI_COMM_WORLD;
    void* const here = MPI_IN_PLACE;
    int at = 0, none[] = {0};
    MPI_Aint far = 0;
    MPI_Request request;
    FAILS(MPI_ERR_BUFFER, MPI_Send(here, 1, MPI_INT, rank, 0, c));
    FAILS(MPI_ERR_BUFFER, MPI_Isend(here, 1, MPI_INT, rank, 0, c, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Recv(here, 1, MPI_INT, rank, 0, c, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_BUFFER, MPI_Sendrecv_replace(here, 1, MPI_INT, rank, 0, rank, 0, c, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(here, buf, 1, MPI_INT, MPI_SUM));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(buf, here, 1, MPI_INT, MPI_SUM));
    OK(MPI_Send(here, 0, MPI_INT, MPI_PROC_NULL, 0, c));   // as any pointer to nothing
    FAILS(MPI_ERR_BUFFER, MPI_Pack(buf, 1, MPI_INT, NULL, 64, &at, c));
    FAILS(MPI_ERR_BUFFER, MPI_Pack(buf, 1, MPI_INT, here, 64, &at, c));
    FAILS(MPI_ERR_BUFFER, MPI_Pack(here, 1, MPI_INT, out, 64, &at, c));
    FAILS(MPI_ERR_BUFFER, MPI_Unpack(NULL, 64, &at, buf, 1, MPI_INT, c));
    FAILS(MPI_ERR_BUFFER, MPI_Pack_external("external32", buf, 1, MPI_INT, NULL, 64, &far));
    FAILS(MPI_ERR_BUFFER, MPI_Unpack_external("external32", NULL, 64, &far, buf, 1, MPI_INT));
    OK(MPI_Pack(buf, 0, MPI_INT, NULL, 0, &at, c));
    CHECK(at == 0 && far == 0, "failed calls moved the position to %d, %ld", at, (long)far);

    // Collectives, alone: each place where the standard gives it no meaning. Where only one side may be in place, the other may not.
    const MPI_Comm self = MPI_COMM_SELF;
    int one[] = {1}, zero[] = {0};
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(here, 1, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce(buf, here, 1, MPI_INT, MPI_SUM, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce(here, here, 1, MPI_INT, MPI_SUM, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Ireduce(buf, here, 1, MPI_INT, MPI_SUM, 0, self, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_init(buf, here, 1, MPI_INT, MPI_SUM, 0, self, MPI_INFO_NULL, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(buf, here, 1, MPI_INT, MPI_SUM, self));
    FAILS(MPI_ERR_BUFFER, MPI_Scan(buf, here, 1, MPI_INT, MPI_SUM, self));
    FAILS(MPI_ERR_BUFFER, MPI_Exscan(buf, here, 1, MPI_INT, MPI_SUM, self));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(buf, here, 1, MPI_INT, MPI_SUM, self));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_scatter(buf, here, one, MPI_INT, MPI_SUM, self));
    FAILS(MPI_ERR_BUFFER, MPI_Gather(buf, 1, MPI_INT, here, 1, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Gatherv(buf, 1, MPI_INT, here, one, zero, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Scatter(here, 1, MPI_INT, buf, 1, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Scatterv(here, one, zero, MPI_INT, buf, 1, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(buf, 1, MPI_INT, here, 1, MPI_INT, self));
    FAILS(MPI_ERR_BUFFER, MPI_Allgatherv(buf, 1, MPI_INT, here, one, zero, MPI_INT, self));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoall(buf, 1, MPI_INT, here, 1, MPI_INT, self));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(buf, one, zero, MPI_INT, here, one, zero, MPI_INT, self));
    MPI_Datatype types[] = {MPI_INT};
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallw(buf, one, zero, types, here, one, zero, types, self));

    // Topologies: arrays that are not there.
    MPI_Comm grid, made;
    OK(MPI_Cart_create(self, 1, one, none, 0, &grid));
    FAILS(MPI_ERR_ARG, MPI_Cart_create(self, 1, NULL, none, 0, &made));
    MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid, NULL, &at));
    FAILS(MPI_ERR_ARG, MPI_Cart_sub(grid, NULL, &made));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(self, 1, one, NULL, 0, &made));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(self, 1, zero, one, NULL, one, MPI_INFO_NULL, 0, &made));
    OK(MPI_Comm_free(&grid));
}

static void users_own(void) {
    MPI_Errhandler mine, got;
    MPI_Comm dup;
    char buf[4];
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_errhandler(dup, mine));
    OK(MPI_Errhandler_free(&mine));
    CHECK(mine == MPI_ERRHANDLER_NULL, "Errhandler_free leaves the handle");
    calls = 0;
    FAILS(MPI_ERR_TAG, MPI_Send(buf, 1, MPI_BYTE, 0, -9, dup));
    CHECK(calls == 1 && last_comm == dup && last_class == MPI_ERR_TAG, "%d calls, class %d", calls, last_class);
    OK(MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER));
    CHECK(calls == 2 && last_class == MPI_ERR_OTHER, "%d calls, class %d", calls, last_class);
    OK(MPI_Comm_get_errhandler(dup, &got));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_TAG, MPI_Send(buf, 1, MPI_BYTE, 0, -9, dup));
    CHECK(calls == 2, "a handler that was replaced is called");
    OK(MPI_Comm_set_errhandler(dup, got));
    OK(MPI_Errhandler_free(&got));
    MPI_Comm inherits;
    OK(MPI_Comm_dup(dup, &inherits));
    FAILS(MPI_ERR_COUNT, MPI_Send(buf, -1, MPI_BYTE, 0, 0, inherits));
    CHECK(calls == 3 && last_comm == inherits, "a duplicate does not inherit the handler");
    OK(MPI_Comm_free(&inherits));
    OK(MPI_Comm_free(&dup));
}

// Errors of what a request or a message stands for go to the handler of its communicator, not to that of MPI_COMM_SELF.
static void owners(void) {
    MPI_Errhandler mine;
    MPI_Comm dup;
    MPI_Message message;
    MPI_Request request;
    char out[2000] = {0}, in[2000];
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    OK(MPI_Comm_set_errhandler(dup, mine));
    OK(MPI_Errhandler_free(&mine));
    calls = 0;
    for (int bytes = 8; bytes <= 2000; bytes += 1992) {   // in its header's line, or beyond
        int before = calls;
        OK(MPI_Isend(out, bytes, MPI_BYTE, 0, 1, dup, &request));
        OK(MPI_Mprobe(0, 1, dup, &message, MPI_STATUS_IGNORE));
        last_comm = MPI_COMM_NULL;
        FAILS(MPI_ERR_COUNT, MPI_Mrecv(in, -1, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        CHECK(calls == before + 1 && last_comm == dup, "%d calls", calls);
        FAILS(MPI_ERR_COUNT, MPI_Imrecv(in, -1, MPI_BYTE, &message, &request));
        CHECK(calls == before + 2, "%d calls", calls);
        last_comm = MPI_COMM_NULL;
        FAILS(MPI_ERR_TRUNCATE, MPI_Mrecv(in, 4, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        CHECK(calls == before + 3 && last_comm == dup && last_class == MPI_ERR_TRUNCATE, "%d calls", calls);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    int before = calls;
    OK(MPI_Irecv(in, 8, MPI_BYTE, 0, 2, dup, &request));
    FAILS(MPI_ERR_ARG, MPI_Test(&request, NULL, MPI_STATUS_IGNORE));
    CHECK(calls == before + 1 && last_comm == dup, "%d calls", calls);
    OK(MPI_Send(out, 8, MPI_BYTE, 0, 2, dup));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    message = MPI_MESSAGE_NO_PROC;
    FAILS(MPI_ERR_COUNT, MPI_Mrecv(in, -1, MPI_BYTE, &message, MPI_STATUS_IGNORE));   // nobody's: that of MPI_COMM_SELF
    CHECK(calls == before + 1, "%d calls", calls);
    OK(MPI_Comm_free(&dup));
}

// With nothing to transfer, a null datatype is as good as any; with an element it is none.
static void null_types(void) {
    const MPI_Datatype null = MPI_DATATYPE_NULL;
    const MPI_Comm self = MPI_COMM_SELF;
    MPI_Datatype nulls[] = {null}, ints[] = {MPI_INT};
    int a[2] = {7, 8}, b[2] = {0, 0}, none[] = {0}, one[] = {1}, at = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Send(a, 0, null, MPI_PROC_NULL, 0, self));
    OK(MPI_Irecv(b, 0, null, 0, 3, self, &request));
    OK(MPI_Send(a, 0, null, 0, 3, self));
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_TAG == 3, "tag %d", status.MPI_TAG);
    OK(MPI_Sendrecv(a, 1, MPI_INT, 0, 4, b, 1, MPI_INT, 0, 4, self, MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(a, 0, null, 0, 4, b, 0, null, 0, 4, self, &status));
    CHECK(b[0] == 7 && status.MPI_TAG == 4, "%d", b[0]);
    OK(MPI_Bcast(b, 0, null, 0, self));
    OK(MPI_Gather(a, 0, null, b, 0, null, 0, self));
    OK(MPI_Allgather(a, 0, null, b, 0, null, self));
    OK(MPI_Alltoallw(a, none, none, nulls, b, none, none, nulls, self));
    OK(MPI_Alltoallw(a, one, none, ints, b, one, none, ints, self));
    OK(MPI_Pack(a, 0, null, b, 8, &at, self));
    CHECK(at == 0 && b[0] == 7, "%d", b[0]);
    FAILS(MPI_ERR_TYPE, MPI_Send(a, 1, null, MPI_PROC_NULL, 0, self));
    FAILS(MPI_ERR_TYPE, MPI_Alltoallw(a, one, none, nulls, b, none, none, nulls, self));
    FAILS(MPI_ERR_RANK, MPI_Send(a, 0, null, 1, 0, self));
    FAILS(MPI_ERR_TYPE, MPI_Allreduce(a, b, 0, null, MPI_SUM, self));   // there is no such sum
}

static void users_errors(void) {
    int class, code, got, length;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "the weaver is out"));
    OK(MPI_Error_class(code, &got));
    CHECK(got == class, "class %d, not %d", got, class);
    OK(MPI_Error_string(code, text, &length));
    CHECK(!strcmp(text, "the weaver is out") && length == 17, "%s", text);
    for (int i = MPI_SUCCESS; i <= MPI_ERR_ABI; i++) {
        int known = MPI_Error_string(i, text, &length);
        if (known == MPI_SUCCESS) CHECK(length > 0 && length == (int)strlen(text), "class %d has no text", i);
    }
    OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(length > 5, "%s", text);
}

// What was added can be taken back: texts first, then codes, then classes.
static void taken_back(void) {
    int class, code, *last, flag, length, before;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(class, "a class"));
    OK(MPI_Add_error_string(code, "a code"));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    before = *last;
    CHECK(flag && before >= code && before >= class, "last used: %d", before);
    FAILS(MPI_ERR_ARG, MPI_Remove_error_class(class));   // it has a code
    FAILS(MPI_ERR_ARG, MPI_Remove_error_code(code));     // it has a text
    OK(MPI_Remove_error_string(code));
    OK(MPI_Error_string(code, text, &length));
    CHECK(length == 0 && !text[0], "\"%s\" is left", text);
    FAILS(MPI_ERR_ARG, MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_code(code));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_class(class));   // it has a text
    OK(MPI_Remove_error_string(class));
    OK(MPI_Remove_error_class(class));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_class(class));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_class(MPI_ERR_RANK));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_code(MPI_ERR_RANK));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_string(MPI_ERR_RANK));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    CHECK(flag && *last <= before && *last >= MPI_ERR_LASTCODE, "last used: %d", *last);
}

static void win_handler(MPI_Win* w, int* code, ...) { (void)w, (void)code; }
static void file_handler(MPI_File* f, int* code, ...) { (void)f, (void)code; }

// Each kind of object has handlers of its own kind.
static void kinds_of_handlers(void) {
    MPI_Errhandler of_comm, of_win, of_file, got;
    OK(MPI_Comm_create_errhandler(handler, &of_comm));
    OK(MPI_Win_create_errhandler(win_handler, &of_win));
    OK(MPI_File_create_errhandler(file_handler, &of_file));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_win));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_file));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_ABORT, "another handler than the one that was set");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&of_comm));
    OK(MPI_Errhandler_free(&of_win));
    OK(MPI_Errhandler_free(&of_file));
    // Files that cannot be opened ask the null file's handler.
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    CHECK(got == MPI_ERRORS_RETURN, "the null file's handler");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    classes();
    no_buffers();
    users_own();
    owners();
    null_types();
    users_errors();
    taken_back();
    kinds_of_handlers();
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size, "after all the errors: %d", sum);
    return finish();
}
