// A C++ library whose functions take MPI's handles: their mangled names must not depend on whose header was used.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <vector>

std::vector<int> everybody(MPI_Comm comm, int value);
template <typename T>
MPI_Datatype type_of();
class Exchange {
public:
    Exchange(MPI_Comm comm, MPI_Datatype type, MPI_Info info);
    ~Exchange();
    MPI_Status round(const void* out, void* in, int count);
    MPI_Request start(void* in, int count, MPI_Errhandler handler);

private:
    MPI_Comm comm_;
    MPI_Datatype type_;
    int rank_, size_;
};
