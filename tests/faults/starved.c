// A rank that has run out of memory and waits for what lies behind messages that it cannot keep: the job ends and says so.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { number = 400, bytes = 60000 };

static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE* f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%lu", &pages) != 1) exit(2);
    fclose(f);
    return (rlim_t)pages * 4096;
}

int main(int argc, char** argv) {
    static MPI_Request requests[number];
    static char buf[bytes];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < number; i++) MPI_Isend(buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(buf, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    } else {
        const rlim_t limit = address_space() + (1 << 20);
        const struct rlimit none = {limit, limit};
        if (setrlimit(RLIMIT_AS, &none) != 0) return 2;
        MPI_Recv(buf, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < number; i++) MPI_Recv(buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("memory was enough\n");
    }
    MPI_Finalize();
    return 0;
}
