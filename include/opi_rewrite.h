/* opi_rewrite.h: what programs need that `weft opi-rewrite` has written. With -DOPI_ON_MPI they run on any MPI library, otherwise on
   those that have ownership passing themselves. For one source of a program; every thread may use it. */
#ifndef OPI_REWRITE_H_INCLUDED
#define OPI_REWRITE_H_INCLUDED

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef OPI_ON_MPI
#include <opi_on_mpi.h>
#else
#include <weft.h>
#endif

/* Stops the program unless the message of `status` brought at least `bytes` bytes. A receive leaves what the message does not bring
   as it was before; a taken buffer has nothing there, so a program that reads on must not run on. */
static inline __attribute__((unused)) void opi_brought(const MPI_Status *status, MPI_Datatype type, long long bytes, const char *buffer,
                                                       const char *file, int line)
{
    int count = 0, size = 0;
    MPI_Get_count(status, type, &count);
    MPI_Type_size(type, &size);
    if (count != MPI_UNDEFINED && (long long)count * size >= bytes)
        return;
    fprintf(stderr, "%s:%d: %lld bytes of '%s' are read, and the message from rank %d brought %lld: the original program would read "
                    "what an earlier message left there; do not rewrite it\n",
            file, line, bytes, buffer, status->MPI_SOURCE, count == MPI_UNDEFINED ? -1 : (long long)count * size);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define OPI_BROUGHT(status, type, bytes, buffer) opi_brought(status, type, (long long)(bytes), buffer, __FILE__, __LINE__)

#endif
