#include "library.hpp"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(text, &length);
    bool good = std::strncmp(text, "Weft", 4) == 0;
    {
        Exchange exchange(MPI_COMM_WORLD, type_of<double>(), MPI_INFO_NULL);
        std::vector<double> out(5000, rank + 0.5), in(5000, -1.0);
        MPI_Status s = exchange.round(out.data(), in.data(), 5000);
        const int left = (rank + size - 1) % size;
        good = good && s.MPI_SOURCE == left && in[0] == left + 0.5 && in[4999] == left + 0.5;
        MPI_Request request = exchange.start(in.data(), 1, MPI_ERRORS_RETURN);
        MPI_Wait(&request, &s);
        good = good && s.MPI_SOURCE == MPI_PROC_NULL && request == MPI_REQUEST_NULL;
    }
    std::vector<int> all = everybody(MPI_COMM_WORLD, rank * 2);
    for (int r = 0; r < size; r++) good = good && all[static_cast<std::size_t>(r)] == r * 2;
    if (!good) {
        std::fprintf(stderr, "rank %d of %d: wrong\n", rank, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) std::printf("use: %d ranks on Weft\n", size);
    MPI_Finalize();
    return 0;
}
