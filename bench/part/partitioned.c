#include "part.h"

/* Headers in the field declare the count of these two as int or as MPI_Count; the symbols are the same, and a count
 * that fills the register is right for both. */
int psend_init_symbol(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *) __asm__("MPI_Psend_init");
int precv_init_symbol(void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *) __asm__("MPI_Precv_init");

void psend_init(const void *buffer, int partitions, size_t bytes, int dest, int tag, MPI_Request *request)
{
    psend_init_symbol(buffer, partitions, (MPI_Count)(bytes / (size_t)partitions), MPI_BYTE, dest, tag, MPI_COMM_WORLD,
                      MPI_INFO_NULL, request);
}

void precv_init(void *buffer, int partitions, size_t bytes, int source, int tag, MPI_Request *request)
{
    precv_init_symbol(buffer, partitions, (MPI_Count)(bytes / (size_t)partitions), MPI_BYTE, source, tag, MPI_COMM_WORLD,
                      MPI_INFO_NULL, request);
}

void await_partition(const Part *p, MPI_Request request, int partition)
{
    int arrived = 0;
    for (;;) {
        MPI_Parrived(request, partition, &arrived);
        if (arrived)
            return;
        wait_a_little(p);
    }
}

void await_partitions(const Part *p, MPI_Request request, int lo, int hi, double *seen_s)
{
    for (int i = lo; i < hi; i++)
        seen_s[i] = 0;
    for (int missing = hi - lo; missing;) {
        for (int i = lo; i < hi; i++) {
            int arrived = 0;
            if (seen_s[i] > 0)
                continue;
            MPI_Parrived(request, i, &arrived);
            if (arrived) {
                seen_s[i] = now_s();
                missing--;
            }
        }
        if (missing)
            wait_a_little(p);
    }
}

void complete(const Part *p, MPI_Request *request)
{
    int done = 0;
    if (p->s.receiver_waits) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
        return;
    }
    for (;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        wait_a_little(p);
    }
}
