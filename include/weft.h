/* weft.h: what Weft offers beyond the MPI standard. Names begin with MPIX_, OPI_ or weft_; include it after or without
   mpi.h. Everything here is optional for a program that wants to run on any library with the standard ABI. */
#ifndef WEFT_H_INCLUDED
#define WEFT_H_INCLUDED

#include <mpi.h>
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* "0.1.0" */
const char *weft_version(void);

/* One line for each function of the standard: its name, a space, and 1 if this library implements it, else 0. */
const char *weft_api_list(void);

/* Control variable number `index`, from 0: returns 0 when there is no such one. Each pointer may be null. `value` holds at
   least 32 characters; a value that is not allowed is given as "?". */
int weft_setting(int index, const char **name, char *value, const char **origin, const char **what, const char **evidence);

/* The rank that process `rank` of `comm` has among those processes of `comm` that are on the caller's node, in the order of
   their ranks; MPI_UNDEFINED if it is on another node, or `rank` is MPI_PROC_NULL. It is an index into arrays that the ranks of
   a node share. Local; its time grows with the ranks before that one, so look each partner up once. Not for
   intercommunicators (MPI_ERR_COMM). Ranks that WEFT_NODE_RANKS parts are on different nodes. Thread-safe. */
int MPIX_Comm_node_rank(MPI_Comm comm, int rank, int *node_rank);
int PMPIX_Comm_node_rank(MPI_Comm comm, int rank, int *node_rank);

/* Ownership passing (docs/ownership.md): buffers that are handed from rank to rank instead of being copied. A buffer has one owner,
   and only the owner may touch it. Gives and takes match as sends and receives do, with each other and with ordinary ones, in order.
   `*ptr` is the pointer to a buffer, of any type. Errors are raised on `comm`, or on MPI_COMM_SELF where there is none. Thread-safe, as
   the thread level allows; the buffers end with MPI_Finalize. */

/* A buffer of `length` bytes, aligned to 64, whose contents are undefined: one that this rank freed before, or new memory. Error:
   MPI_ERR_NO_MEM. */
int OPI_Alloc(void **ptr, size_t length);
/* Frees a buffer that this rank owns, whoever allocated it, and sets `*ptr` to NULL. A null `*ptr` is allowed. */
int OPI_Free(void **ptr);
/* Gives `count` elements of `datatype` at the start of the buffer, and with them the buffer, to `rank`; sets `*ptr` to NULL. On failure
   the buffer is still the caller's. Returns as MPI_Send and MPI_Isend do. To a rank with which no memory is shared, and for types with
   gaps, the data are sent and the buffer is freed. Error for a pointer that is no buffer: MPI_ERR_BUFFER. */
int OPI_Give(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm);
int OPI_Igive(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request *request);
/* Receives at most `count` elements, and makes `*ptr` the buffer in which they are; its former value is not read. A buffer that was given
   arrives as it is; data that were sent arrive in a new one, with room for `count` elements. `rank` may be MPI_ANY_SOURCE, `tag`
   MPI_ANY_TAG. `*ptr` is valid when the call, or the request, is complete; the caller is the owner then, also after MPI_ERR_TRUNCATE.
   From MPI_PROC_NULL comes NULL. */
int OPI_Take(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Status *status);
int OPI_Itake(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request *request);

#if defined(__cplusplus)
}
#endif

#endif
