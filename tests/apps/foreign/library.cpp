#include "library.hpp"

template <>
MPI_Datatype type_of<double>() { return MPI_DOUBLE; }
template <>
MPI_Datatype type_of<int>() { return MPI_INT; }

std::vector<int> everybody(MPI_Comm comm, int value) {
    int size;
    MPI_Comm_size(comm, &size);
    std::vector<int> all(static_cast<std::size_t>(size));
    MPI_Allgather(&value, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    return all;
}

Exchange::Exchange(MPI_Comm comm, MPI_Datatype type, MPI_Info info) : comm_(MPI_COMM_NULL), type_(type) {
    (void)info;
    MPI_Comm_dup(comm, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
}
Exchange::~Exchange() { MPI_Comm_free(&comm_); }

MPI_Status Exchange::round(const void* out, void* in, int count) {
    MPI_Status s;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(in, count, type_, (rank_ + size_ - 1) % size_, 3, comm_, &requests[0]);
    MPI_Isend(out, count, type_, (rank_ + 1) % size_, 3, comm_, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    s = statuses[0];
    return s;
}
MPI_Request Exchange::start(void* in, int count, MPI_Errhandler handler) {
    MPI_Request request;
    MPI_Comm_set_errhandler(comm_, handler);
    MPI_Irecv(in, count, type_, MPI_PROC_NULL, 0, comm_, &request);
    return request;
}
