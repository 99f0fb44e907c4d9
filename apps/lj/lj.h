/* Molecular dynamics of a Lennard-Jones liquid over ranks in a box of their own each, with the exchange pattern of MiniMD: positions of
 * boundary atoms go out in staged swaps before the forces are computed, their forces come back in the reverse order, and every
 * 20 steps atoms change their rank and neighbours are sought anew. The two exchanges of every step are done in four forms.
 *
 * Reduced units: mass, diameter, energy and Boltzmann's constant are 1. Half neighbour lists: each pair is computed once, by one of
 * its ranks. Leapfrog: velocities belong to half steps. Runs on any communicator, MPI_COMM_SELF for the serial one. No globals. */
#ifndef WEFT_LJ_H
#define WEFT_LJ_H

#include <weft_signal.h>

#include "common/arena.h"
#include "common/opi.h"

enum { lj_most_swaps = 48 };

typedef struct LjSetup {
    int cells[3];            /* of the face-centred lattice, four atoms each */
    int rebuild_every;       /* steps: migration, new ghosts, new neighbours */
    double density, temperature, cutoff, skin, dt;
    int ranks_per_node;
} LjSetup;

/* One of the staged exchanges: atoms near one side of the box go to `to`, and ghosts come from `from`. */
typedef struct Swap {
    int to, from;            /* ranks; the own one where the grid is one rank wide */
    int to_node, from_node;  /* their node ranks, MPI_UNDEFINED where memory does not reach */
    int dim;
    double shift;            /* added to that coordinate of what is sent: the box, where it leaves it */
    int first, received;     /* where the ghosts lie, and how many */
    int sent;
    int *list;               /* which atoms are sent */
} Swap;

/* What a rank tells those of its node; the rest of the arena lies alike in all. */
typedef struct Board {
    weft_signal forward[lj_most_swaps], reverse[lj_most_swaps];
    int32_t first[lj_most_swaps];
} Board;

typedef enum LjPhase { lj_migrate, lj_border, lj_forward, lj_reverse, lj_phases } LjPhase;

/* Messages that this rank sent or, in the forms without messages, would have sent to another; by phase, and by size as the classes
 * of the shared-heap dissertation have it: below 256 B, below 8 KiB, more. */
typedef struct Census {
    int64_t by_phase[lj_phases];
    int64_t immediate, single, synergistic;
    int64_t node_local;
} Census;

typedef struct Lj {
    LjSetup setup;
    MPI_Comm comm;
    int rank, size;
    int grid[3], at[3], below[3], above[3]; /* ranks along each dimension, the own place, the neighbours' ranks */
    double box[3], low[3], high[3];
    double reach;            /* cutoff + skin */
    int owned, ghosts, capacity;
    double *x, *f, *v;       /* three numbers for each atom, owned ones first; x and f in the arena */
    int64_t *id;
    Swap swaps[lj_most_swaps];
    int swap_count;
    Arena arena;
    Board *board;            /* in the arena */
    double *send, *receive;  /* buffers, in the arena */
    Opi opi;
    int *neighbor_start, *neighbors; /* of owned atom i: neighbors[neighbor_start[i] .. neighbor_start[i + 1]) */
    size_t neighbor_room;
    int bins[3], *bin_head, *bin_next;
    int bin_room;
    double potential;        /* of the last forces, own part */
    double kinetic;          /* of the last kick, own part, from the velocities on both sides of it */
    double communication_s, force_s, rebuild_s;
    Census census;
} Lj;

LjSetup lj_melt(const int cells[3]);  /* density 0.8442, temperature 1.44, cutoff 2.5, skin 0.3, step 0.005 */
void lj_open(Lj *l, MPI_Comm comm, const LjSetup *setup);
void lj_close(Lj *l);
/* Puts all atoms to their places at the start, and finds ghosts and neighbours; clocks and census begin anew. */
void lj_begin(Lj *l);
/* `first` is the number of the first step, from 1. */
void lj_steps(Lj *l, Form form, int first, int count);
double lj_potential_energy(const Lj *l); /* of all; collective */
double lj_kinetic_energy(const Lj *l);
/* The bits of all positions and velocities, whichever rank has them; collective. */
uint64_t lj_digest(const Lj *l);
int64_t lj_atoms(const Lj *l);           /* in the whole box */
/* What the census must be on a rank after lj_begin and so many steps. */
int64_t lj_expected_messages(const Lj *l, int steps);

/* Between the files of this folder. */
void lj_migrate_atoms(Lj *l);                 /* borders.c */
void lj_find_borders(Lj *l);
void lj_forward_positions(Lj *l, Form form);  /* exchange.c */
void lj_reverse_forces(Lj *l, Form form);
void lj_find_neighbors(Lj *l);                /* force.c */
void lj_compute_forces(Lj *l);
void lj_note(Lj *l, LjPhase phase, int to, size_t bytes);

#endif
