/* Counts and times the calls of a program that communicate: the core of the preload library behind `weft profile`.
 * Included by profile.c and by the generated calls alone. Any thread may call; each has counters of its own, and
 * there are no locks. */
#ifndef WEFT_PROFILE_H
#define WEFT_PROFILE_H

#include <mpi.h>
#include <stdbool.h>

enum { profile_most = 512 }; /* functions at most */

typedef enum ProfileCategory {
    profile_point_to_point, profile_completion, profile_collective, profile_one_sided, profile_files, profile_communicators,
    profile_categories
} ProfileCategory;

typedef struct ProfileFunction {
    const char *name;
    ProfileCategory category;
} ProfileFunction;

/* Generated: all functions that are counted. */
extern const int profile_count;
extern const ProfileFunction profile_functions[];

typedef struct ProfileCall {
    void *function; /* the library's own */
    int index;
    bool counted;   /* false in a call that another one makes, and while nothing is counted */
    double begin_s;
} ProfileCall;

ProfileCall profile_begin(int index);
void profile_end(ProfileCall *call);
/* -1: this call does not tell. */
void profile_add_bytes(int index, long long bytes);
long long profile_bytes(MPI_Count count, MPI_Datatype type);

#endif
