/* The library of the application: which datatype its numbers have. */
#include "classes.h"

MPI_Datatype type_of_real(int bytes)
{
    switch (bytes) {
    case 4:
        return MPI_FLOAT;
    case 8:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL;
    }
}
