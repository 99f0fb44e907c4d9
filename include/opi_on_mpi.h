/* opi_on_mpi.h: ownership passing on plain MPI calls, for programs that shall run on any MPI library. The interface is that of the
   shared heap; here each give is a send followed by free, and each take is an allocation followed by a receive, so it is no faster
   than MPI. Gives match MPI_Recv, and MPI_Send matches takes. Include it in one source only. A pointer to a buffer is NULL once it
   has been given or freed. Under MPI_THREAD_MULTIPLE the caller must keep OPI_Igive to one thread at a time. */
#ifndef OPI_ON_MPI_H_INCLUDED
#define OPI_ON_MPI_H_INCLUDED

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define OPI_LOCAL static inline __attribute__((unused))

/* Pointers of any type come in as void **, so they are read and written as bytes. */
OPI_LOCAL void *opi_get(void **ptr)
{
    void *buffer;
    memcpy(&buffer, ptr, sizeof buffer);
    return buffer;
}

OPI_LOCAL void opi_set(void **ptr, void *buffer)
{
    memcpy(ptr, &buffer, sizeof buffer);
}

/* A buffer of `length` bytes. */
OPI_LOCAL int OPI_Alloc(void **ptr, size_t length)
{
    void *buffer = malloc(length ? length : 1);
    if (!buffer) {
        MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    opi_set(ptr, buffer);
    return MPI_SUCCESS;
}

OPI_LOCAL int OPI_Free(void **ptr)
{
    free(opi_get(ptr));
    opi_set(ptr, NULL);
    return MPI_SUCCESS;
}

OPI_LOCAL int OPI_Give(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm)
{
    int err = MPI_Send(opi_get(ptr), count, datatype, rank, tag, comm);
    return err == MPI_SUCCESS ? OPI_Free(ptr) : err;
}

/* Gives under way: each buffer is freed when its send is complete, in a later call or at MPI_Finalize. */
struct opi_given {
    struct opi_given *next;
    void *buffer;
    MPI_Request send;
};
static struct opi_given *opi_under_way;

OPI_LOCAL int opi_reap(int wait)
{
    struct opi_given **place = &opi_under_way;
    while (*place) {
        struct opi_given *given = *place;
        int done = 1, err = wait ? MPI_Wait(&given->send, MPI_STATUS_IGNORE) : MPI_Test(&given->send, &done, MPI_STATUS_IGNORE);
        if (err != MPI_SUCCESS)
            return err;
        if (!done) {
            place = &given->next;
            continue;
        }
        *place = given->next;
        free(given->buffer);
        free(given);
    }
    return MPI_SUCCESS;
}

OPI_LOCAL int opi_at_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return opi_reap(1);
}

OPI_LOCAL int opi_query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

OPI_LOCAL int opi_release(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

OPI_LOCAL int opi_cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* The give is complete for its caller at once; the request is there to be waited for. */
OPI_LOCAL int OPI_Igive(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request *req)
{
    static int key = MPI_KEYVAL_INVALID;
    struct opi_given *given = malloc(sizeof *given);
    int err = given ? opi_reap(0) : MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS && key == MPI_KEYVAL_INVALID) {
        err = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, opi_at_finalize, &key, NULL);
        if (err == MPI_SUCCESS)
            err = MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Isend(opi_get(ptr), count, datatype, rank, tag, comm, &given->send);
    if (err != MPI_SUCCESS) {
        free(given);
        return err;
    }
    given->buffer = opi_get(ptr);
    given->next = opi_under_way;
    opi_under_way = given;
    opi_set(ptr, NULL);
    err = MPI_Grequest_start(opi_query, opi_release, opi_cancel, NULL, req);
    return err == MPI_SUCCESS ? MPI_Grequest_complete(*req) : err;
}

/* Room for `count` elements that may lie apart, as those of derived datatypes do. */
OPI_LOCAL int opi_room(void **ptr, int count, MPI_Datatype datatype)
{
    MPI_Aint low = 0, extent = 0;
    int err = MPI_Type_get_extent(datatype, &low, &extent);
    return err == MPI_SUCCESS ? OPI_Alloc(ptr, (size_t)count * (size_t)extent) : err;
}

OPI_LOCAL int OPI_Take(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Status *status)
{
    int err = opi_room(ptr, count, datatype);
    return err == MPI_SUCCESS ? MPI_Recv(opi_get(ptr), count, datatype, rank, tag, comm, status) : err;
}

OPI_LOCAL int OPI_Itake(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request *req)
{
    int err = opi_room(ptr, count, datatype);
    return err == MPI_SUCCESS ? MPI_Irecv(opi_get(ptr), count, datatype, rank, tag, comm, req) : err;
}

#endif
