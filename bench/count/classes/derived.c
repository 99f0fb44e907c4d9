/* Class 1: a derived datatype. No inlining can know it. */
#include "classes.h"

static MPI_Datatype real;

void prepare(void)
{
    MPI_Type_contiguous(sizeof(Real), MPI_BYTE, &real);
    MPI_Type_commit(&real);
}

__attribute__((noinline)) void send_numbers(const Real *numbers, MPI_Request *requests, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(&numbers[i], 1, real, 1, 0, MPI_COMM_WORLD, &requests[i]);
}

void finish(void)
{
    MPI_Type_free(&real);
}
