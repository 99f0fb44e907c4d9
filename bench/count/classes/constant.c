/* Class 2: a predefined datatype, named in the call. */
#include "classes.h"

void prepare(void) {}

__attribute__((noinline)) void send_numbers(const Real *numbers, MPI_Request *requests, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(&numbers[i], 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &requests[i]);
}

void finish(void) {}
