// Handles that were never given out: addresses of nothing, of pages that may not be read, between two objects, of other
// things. Each is an error of its kind, and nothing is harmed. For builds that look (WEFT_CHECK_HANDLES); others may crash.
#include <sys/mman.h>

#include "check.h"

static void in_every_kind(void* at) {
    const MPI_Comm world = MPI_COMM_WORLD;
    int number = 7, flag = 0, one = 0;
    char text[MPI_MAX_OBJECT_NAME];
    MPI_Comm comm = at, made;
    MPI_Datatype type = at;
    MPI_Request request = at, pair[2] = {MPI_REQUEST_NULL, at};
    MPI_Group group = at;
    MPI_Info info = at;
    MPI_Errhandler handler = at;
    MPI_Op op = at;
    MPI_Message message = at;
    MPI_Session session = at;
    MPI_Win win = at;
    MPI_File file = at;
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(comm, &number));
    FAILS(MPI_ERR_COMM, MPI_Send(&number, 1, MPI_INT, 0, 0, comm));
    FAILS(MPI_ERR_COMM, MPI_Barrier(comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_get_name(comm, text, &number));
    FAILS(MPI_ERR_TYPE, MPI_Send(&number, 1, type, 0, 0, world));
    FAILS(MPI_ERR_TYPE, MPI_Type_commit(&type));
    FAILS(MPI_ERR_TYPE, MPI_Type_create_struct(1, &flag, (MPI_Aint[]){0}, &type, &type));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(&number, 1, type, 0, world));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&request, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Waitany(2, pair, &number, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(group, &number));
    FAILS(MPI_ERR_GROUP, MPI_Comm_create(world, group, &made));
    FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(info, &number));
    FAILS(MPI_ERR_INFO, MPI_Comm_set_info(world, info));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(world, handler));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Errhandler_free(&handler));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&number, &one, 1, MPI_INT, op, world));
    FAILS(MPI_ERR_OP, MPI_Op_free(&op));
    FAILS(MPI_ERR_REQUEST, MPI_Mrecv(&number, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_SESSION, MPI_Session_get_num_psets(session, MPI_INFO_NULL, &number));
    FAILS(MPI_ERR_SESSION, MPI_Session_finalize(&session));
    FAILS(MPI_ERR_WIN, MPI_Win_fence(0, win));
    FAILS(MPI_ERR_FILE, MPI_File_close(&file));
    // These return no error code: nobody has that number.
    CHECK(MPI_Comm_toint(comm) == 0 && MPI_Type_toint(type) == 0 && MPI_Request_toint(request) == 0, "a number for garbage");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    static int64_t other[128];
    memset(other, 0x5a, sizeof other);
    char* const page = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "no page");
    OK(munmap(page + 4096, 4096) == 0 ? MPI_SUCCESS : MPI_ERR_OTHER);
    in_every_kind((void*)0xdeadbeef000);
    in_every_kind((void*)0xdeadbeef001);
    in_every_kind((void*)0xdeadbeefdeadbee8);   // no address of this processor
    in_every_kind((void*)-8);
    in_every_kind(page);
    in_every_kind(page + 4096);
    in_every_kind(other);
    in_every_kind((char*)other + 4);
    // Nothing of it did harm.
    MPI_Request request;
    int sent = rank, got = -1;
    OK(MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Send(&sent, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == (rank + size - 1) % size, "%d", got);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return finish();
}
