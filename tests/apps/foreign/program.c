// Compiled against another MPI's header: constants, handles, statuses and callbacks must mean the same on Weft.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, copied;

static void need(int true_, const char* what) {
    if (true_) return;
    fprintf(stderr, "rank %d of %d: wrong: %s\n", rank, size, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}
static int on_copy(MPI_Comm comm, int key, void* extra, void* value, void* out, int* flag) {
    (void)comm, (void)key, (void)extra;
    copied++;
    *(void**)out = value;
    *flag = 1;
    return MPI_SUCCESS;
}
static void on_error(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code, copied += 100; }

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, flag;
    MPI_Get_library_version(text, &length);
    need(strncmp(text, "Weft", 4) == 0, "this is not Weft");

    // A status laid out by the one header, filled by the other's library.
    MPI_Status s[2];
    memset(s, 0x77, sizeof s);
    double out = rank + 0.25, in = -1;
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, (rank + 1) % size, 17, &in, 1, MPI_DOUBLE, (rank + size - 1) % size, MPI_ANY_TAG, MPI_COMM_WORLD, &s[0]);
    need(s[0].MPI_SOURCE == (rank + size - 1) % size && s[0].MPI_TAG == 17, "the status");
    need(((unsigned char*)&s[1])[0] == 0x77, "the size of a status");
    need(in == s[0].MPI_SOURCE + 0.25, "the message");
    int count;
    MPI_Get_count(&s[0], MPI_FLOAT, &count);
    need(count == 2, "the count");

    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    need(sum == size * (size - 1) / 2, "the sum");
    int* all = malloc(sizeof(int) * (size_t)size);
    all[rank] = rank * 3;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) need(all[r] == r * 3, "the gathered values");
    free(all);

    int key;
    void* value;
    MPI_Comm dup;
    MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_get_attr(dup, key, &value, &flag);
    need(flag && value == &key && copied == 1, "the attribute");
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(dup, handler);
    int code = MPI_Send(NULL, 0, MPI_INT, 0, -7, dup), class;
    MPI_Error_class(code, &class);
    need(copied == 101 && class == MPI_ERR_TAG, "the error handler");
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&dup);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);

    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    length = sizeof text;
    MPI_Info_get_string(info, "key", &length, text, &flag);
    need(flag && !strcmp(text, "value"), "the info");
    MPI_Info_free(&info);
    need(info == MPI_INFO_NULL, "the null info");
    if (rank == 0) printf("program: %d ranks on Weft\n", size);
    MPI_Finalize();
    return 0;
}
