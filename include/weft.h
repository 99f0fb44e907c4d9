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

#if defined(__cplusplus)
}
#endif

#endif
