#include "common/opi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { header = 64, page = 4096 };

/* A function pointer out of a data pointer, as POSIX has it. */
static void find(const char *name, void *to)
{
    void *at = dlsym(RTLD_DEFAULT, name);
    memcpy(to, &at, sizeof at);
}

void opi_open(Opi *o)
{
    memset(o, 0, sizeof *o);
    find("OPI_Alloc", &o->alloc);
    find("OPI_Free", &o->release);
    find("OPI_Give", &o->give);
    find("OPI_Igive", &o->igive);
    find("OPI_Take", &o->take);
    if (!o->alloc || !o->release || !o->give || !o->igive || !o->take)
        o->alloc = NULL;
}

void opi_close(Opi *o)
{
    while (o->pool) {
        OpiBlock *b = o->pool;
        o->pool = b->next;
        free(b);
    }
}

/* Beyond the limit the least recently freed half goes back to the heap. */
static void shrink(Opi *o)
{
    OpiBlock *last = o->pool;
    for (int i = 1; i < opi_pool_limit / 2; i++)
        last = last->next;
    OpiBlock *rest = last->next;
    last->next = NULL;
    o->pooled = opi_pool_limit / 2;
    while (rest) {
        OpiBlock *b = rest;
        rest = b->next;
        free(b);
    }
}

void opi_alloc(Opi *o, void **ptr, size_t bytes)
{
    if (o->alloc) {
        if (o->alloc(ptr, bytes) != MPI_SUCCESS)
            fail("OPI_Alloc of %zu bytes failed", bytes);
        return;
    }
    size_t capacity = (bytes + page - 1) / page * page;
    OpiBlock **at = &o->pool;
    while (*at && (*at)->capacity < capacity)
        at = &(*at)->next;
    OpiBlock *b = *at;
    if (b) {
        *at = b->next;
        o->pooled--;
    } else {
        b = aligned_alloc(header, header + capacity);
        if (!b)
            fail("no memory for %zu bytes", bytes);
        b->capacity = capacity;
    }
    *ptr = (char *)b + header;
}

void opi_free(Opi *o, void **ptr)
{
    if (o->alloc) {
        if (o->release(ptr) != MPI_SUCCESS)
            fail("OPI_Free failed");
        return;
    }
    OpiBlock *b = (OpiBlock *)((char *)*ptr - header);
    b->next = o->pool;
    o->pool = b;
    *ptr = NULL;
    if (++o->pooled > opi_pool_limit)
        shrink(o);
}

void opi_give(Opi *o, void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm)
{
    if (o->alloc) {
        o->give(ptr, count, type, rank, tag, comm);
        return;
    }
    MPI_Send(*ptr, count, type, rank, tag, comm);
    opi_free(o, ptr);
}

void opi_igive(Opi *o, void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (o->alloc) {
        o->igive(ptr, count, type, rank, tag, comm, request);
        return;
    }
    if (o->given_count == opi_most_given)
        fail("more than %d buffers given without opi_wait", opi_most_given);
    MPI_Isend(*ptr, count, type, rank, tag, comm, request);
    o->given[o->given_count++] = *ptr;
    *ptr = NULL;
}

void opi_take(Opi *o, void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm)
{
    if (o->alloc) {
        o->take(ptr, count, type, rank, tag, comm, MPI_STATUS_IGNORE);
        return;
    }
    int bytes;
    MPI_Type_size(type, &bytes);
    opi_alloc(o, ptr, (size_t)bytes * (size_t)count);
    MPI_Recv(*ptr, count, type, rank, tag, comm, MPI_STATUS_IGNORE);
}

void opi_wait(Opi *o, int count, MPI_Request *requests)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    while (o->given_count > 0)
        opi_free(o, &o->given[--o->given_count]);
}
