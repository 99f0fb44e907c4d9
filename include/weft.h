/* weft.h: what Weft offers beyond the MPI standard. Names begin with MPIX_, OPI_ or weft_; include it after or without
   mpi.h. Everything here is optional for a program that wants to run on any library with the standard ABI. */
#ifndef WEFT_H_INCLUDED
#define WEFT_H_INCLUDED

#include <mpi.h>

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

#if defined(__cplusplus)
}
#endif

#endif
