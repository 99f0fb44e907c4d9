#include <math.h>
#include <string.h>

#include "sem/sem.h"

double sem_dot(const Sem *s, const double *a, const double *b)
{
    double mine = 0, all;
    for (size_t i = 0; i < s->length; i++)
        mine += s->share[i] * a[i] * b[i];
    if (s->size == 1)
        return mine;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, s->comm);
    return all;
}

/* to = a to + b from */
static void combine(size_t length, double a, double *restrict to, double b, const double *restrict from)
{
    for (size_t i = 0; i < length; i++)
        to[i] = a * to[i] + b * from[i];
}

int sem_solve(Sem *s, int iterations, double tolerance)
{
    memset(s->u, 0, sizeof(double) * s->length);
    memcpy(s->r, s->f, sizeof(double) * s->length);
    memcpy(s->p, s->f, sizeof(double) * s->length);
    double before = sem_dot(s, s->r, s->r), least = tolerance * tolerance * before;
    int done = 0;
    while (done < iterations && before > least) {
        sem_apply_mass(s, s->p, s->q);
        sem_assemble(s, s->q);
        double step = before / sem_dot(s, s->p, s->q);
        combine(s->length, 1, s->u, step, s->p);
        combine(s->length, 1, s->r, -step, s->q);
        double now = sem_dot(s, s->r, s->r);
        combine(s->length, now / before, s->p, 1, s->r);
        before = now;
        done++;
    }
    return done;
}
