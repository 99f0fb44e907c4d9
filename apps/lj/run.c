#include <string.h>

#include "lj/lj.h"

static void drift(Lj *l)
{
    for (int i = 0; i < 3 * l->owned; i++)
        l->x[i] += l->setup.dt * l->v[i];
}

static void kick(Lj *l)
{
    double twice = 0;
    for (int i = 0; i < 3 * l->owned; i++) {
        double before = l->v[i];
        l->v[i] += l->setup.dt * l->f[i];
        twice += 0.5 * (before * before + l->v[i] * l->v[i]);
    }
    l->kinetic = twice / 2;
}

void lj_steps(Lj *l, Form form, int first, int count)
{
    if (form >= form_shared && !l->arena.shared)
        fail("the form %s needs memory that the ranks of a node share, and this library gives none here", form_names[form]);
    for (int step = first; step < first + count; step++) {
        drift(l);
        double start = now_s();
        if (step % l->setup.rebuild_every == 0) {
            lj_migrate_atoms(l);
            lj_find_borders(l);
            lj_find_neighbors(l);
            l->rebuild_s += now_s() - start;
        } else {
            lj_forward_positions(l, form);
            l->communication_s += now_s() - start;
        }
        double began = now_s();
        lj_compute_forces(l);
        double done = now_s();
        lj_reverse_forces(l, form);
        l->force_s += done - began;
        l->communication_s += now_s() - done;
        kick(l);
    }
}

static double total(const Lj *l, double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, l->comm);
    return all;
}

double lj_potential_energy(const Lj *l) { return total(l, l->potential); }
double lj_kinetic_energy(const Lj *l) { return total(l, l->kinetic); }

uint64_t lj_digest(const Lj *l)
{
    uint64_t mine = 0, all;
    for (int i = 0; i < l->owned; i++)
        for (int d = 0; d < 3; d++) {
            uint64_t x, v, place = (uint64_t)(3 * l->id[i] + d);
            memcpy(&x, &l->x[3 * i + d], sizeof x);
            memcpy(&v, &l->v[3 * i + d], sizeof v);
            mine += mix(x ^ mix(2 * place)) + mix(v ^ mix(2 * place + 1));
        }
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, l->comm);
    return all;
}

/* Each rebuild: two messages for each swap with another rank, and in each dimension with several ranks two for each neighbour. A step
 * without one: a message for each such swap. Every step: as many again on the way back. */
int64_t lj_expected_messages(const Lj *l, int steps)
{
    int64_t swaps = 0, migrations = 0, rebuilds = 1 + steps / l->setup.rebuild_every;
    for (int i = 0; i < l->swap_count; i++)
        swaps += l->swaps[i].to != l->rank;
    for (int d = 0; d < 3; d++)
        migrations += l->grid[d] == 1 ? 0 : l->grid[d] == 2 ? 2 : 4;
    return rebuilds * (2 * swaps + migrations) + (2 * (int64_t)steps - (rebuilds - 1)) * swaps;
}
