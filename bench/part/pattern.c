#include "pattern.h"

#include <stdio.h>

void pattern_sample(const Part *p, int slot, double took_s, double ideal_s, double *time_us, double *ideal_us)
{
    double longest = 0;
    MPI_Reduce(&took_s, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (slot < 0)
        return;
    time_us[slot] = longest * 1e6;
    ideal_us[slot] = ideal_s * 1e6;
}

void pattern_report(const Part *p, size_t bytes, const Volume *volume, const double *time_us, const double *ideal_us)
{
    double communication[max_iterations], rate[max_iterations];
    unsigned long long mine = volume->sent, all = 0, most = 0;
    char fields[256];
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; i < p->s.iterations; i++) {
        communication[i] = time_us[i] - ideal_us[i];
        rate[i] = (double)all / p->w.size / time_us[i] * 1e3;
    }
    snprintf(fields, sizeof fields,
             "\"bytes_with_neighbour\":%zu,\"nominal_bytes_with_neighbour\":%zu,\"bytes_of_busiest_rank\":%llu,\"bytes_of_all\":%llu,",
             volume->with_neighbour, volume->nominal, most, all);
    if (p->w.rank == 0 && !p->w.opt.json)
        printf("# %zu B: an iteration exchanges %zu B with a neighbour (nominally %zu B), %llu B in all\n", bytes, volume->with_neighbour,
               volume->nominal, all);
    print_record(p, bytes, fields,
                 (Samples[]){{"time_us", time_us}, {"ideal_us", ideal_us}, {"communication_us", communication},
                             {"KBps_per_rank", rate}, {0}}, p->s.iterations);
}
