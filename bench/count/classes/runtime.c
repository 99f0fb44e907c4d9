/* Class 3: a predefined datatype that a function chooses, as in LULESH (by the size of its numbers) and Nekbone (by a switch). */
#include "classes.h"

void prepare(void) {}

__attribute__((noinline)) void send_numbers(const Real *numbers, MPI_Request *requests, int n)
{
    MPI_Datatype real = type_of_real(sizeof(Real));
    for (int i = 0; i < n; i++)
        MPI_Isend(&numbers[i], 1, real, 1, 0, MPI_COMM_WORLD, &requests[i]);
}

void finish(void) {}
