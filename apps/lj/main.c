/* weft-lj: molecular dynamics whose exchanges are done in four forms, checked against a serial run and each other, timed in turns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj/lj.h"

typedef struct Choice {
    int atoms_per_rank, steps, check_steps, rebuild_every, ranks_per_node;
    const char *forms, *cells;
    bool check_only, census;
} Choice;

/* --cells A,B,C, or the cube whose atoms are at least so many for each rank: its edge is ceil(cbrt(ranks * atoms / 4)). */
static LjSetup setup_of(const Choice *c, int ranks)
{
    int cells[3];
    if (*c->cells) {
        if (sscanf(c->cells, "%d,%d,%d", &cells[0], &cells[1], &cells[2]) != 3 || cells[0] < 1 || cells[1] < 1 || cells[2] < 1)
            fail("--cells takes three numbers with commas, not %s", c->cells);
    } else {
        cells[0] = cells[1] = cells[2] = (int)ceil(cbrt((double)ranks * c->atoms_per_rank / 4) - 1e-9);
    }
    LjSetup setup = lj_melt(cells);
    setup.rebuild_every = c->rebuild_every;
    setup.ranks_per_node = c->ranks_per_node;
    return setup;
}

typedef struct Energies {
    double potential, kinetic;
} Energies;

static Energies energies_of(const Lj *l) { return (Energies){lj_potential_energy(l), lj_kinetic_energy(l)}; }

/* The same by one rank, for all. */
static Energies serial_energies(const World *w, const LjSetup *setup, int steps)
{
    double both[2] = {0};
    if (w->rank == 0) {
        static Lj alone;
        lj_open(&alone, MPI_COMM_SELF, setup);
        lj_begin(&alone);
        lj_steps(&alone, form_mpi, 1, steps);
        Energies e = energies_of(&alone);
        both[0] = e.potential;
        both[1] = e.kinetic;
        lj_close(&alone);
    }
    MPI_Bcast(both, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return (Energies){both[0], both[1]};
}

/* Energy is conserved, but for what the finite step makes of it; the lattice's own is -6.7733681 an atom at this density. */
static void check_conservation(const Lj *l, Energies now)
{
    double atoms = (double)lj_atoms(l), start = -6.7733681 + 1.5 * l->setup.temperature * (atoms - 1) / atoms;
    expect_close("lj: energy of an atom against that at the start", (now.potential + now.kinetic) / atoms, start, 0.05 / fabs(start));
}

static int64_t messages_of(const Lj *l)
{
    int64_t sum = 0;
    for (int phase = 0; phase < lj_phases; phase++)
        sum += l->census.by_phase[phase];
    return sum;
}

/* Every form against a serial run and, to the bit, the others; the number of messages against what the pattern makes it. */
static void check(const World *w, Lj *l, const Choice *c, const bool on[form_count])
{
    Energies serial = serial_energies(w, &l->setup, c->check_steps);
    uint64_t first = 0;
    for (int form = 0; form < form_count; form++) {
        if (!on[form])
            continue;
        lj_begin(l);
        lj_steps(l, form, 1, c->check_steps);
        Energies e = energies_of(l);
        double atoms = (double)lj_atoms(l);
        expect_close("lj: potential energy of an atom against the serial run", e.potential / atoms, serial.potential / atoms, 1e-9);
        expect_close("lj: kinetic energy of an atom against the serial run", e.kinetic / atoms, serial.kinetic / atoms, 1e-9);
        check_conservation(l, e);
        uint64_t digest = lj_digest(l);
        if (first)
            expect_same("lj: the bits of two forms", digest, first);
        first = digest;
        expect_same("lj: messages of a rank", (uint64_t)messages_of(l), (uint64_t)lj_expected_messages(l, c->check_steps));
    }
    if (w->rank == 0 && !w->opt.json)
        printf("# %lld atoms, %d x %d x %d ranks, %d swaps; after %d steps: potential energy %.10f, kinetic %.10f of an atom\n",
               (long long)lj_atoms(l), l->grid[0], l->grid[1], l->grid[2], l->swap_count, c->check_steps,
               serial.potential / (double)lj_atoms(l), serial.kinetic / (double)lj_atoms(l));
}

enum { communication, application, rebuild, kinds };
static const char *const kind_names[kinds] = {"communication", "application", "rebuild"};

/* Microseconds for a step, of the slowest rank; a rebuild's is its share of each step. */
static void measure(Lj *l, Form form, int steps, double us[kinds])
{
    lj_begin(l);
    MPI_Barrier(l->comm);
    double start = now_s(), took[kinds];
    lj_steps(l, form, 1, steps);
    took[application] = now_s() - start;
    took[communication] = l->communication_s;
    took[rebuild] = l->rebuild_s;
    for (int k = 0; k < kinds; k++)
        us[k] = greatest_of(l->comm, took[k]) / steps * 1e6;
}

/* The largest message of a step at the start, on any rank. */
static size_t largest_message(Lj *l)
{
    int most = 0;
    lj_begin(l);
    for (int i = 0; i < l->swap_count; i++)
        if (l->swaps[i].to != l->rank && l->swaps[i].sent > most)
            most = l->swaps[i].sent;
    return (size_t)greatest_of(l->comm, 3.0 * sizeof(double) * most);
}

static void measure_all(const World *w, Lj *l, const Choice *c, const bool on[form_count])
{
    static double samples[form_count][kinds][max_samples], lines[max_samples + 1];
    size_t bytes = largest_message(l);
    lines[0] = line_ns(w);
    uint64_t first = 0;
    for (int rep = 0; rep < w->opt.reps; rep++) {
        for (int i = 0; i < form_count; i++) {
            int form = (i + rep) % form_count; /* none is always the first */
            double us[kinds];
            if (!on[form])
                continue;
            measure(l, form, c->steps, us);
            for (int k = 0; k < kinds; k++)
                samples[form][k][rep] = us[k];
            uint64_t digest = lj_digest(l);
            if (first)
                expect_same("lj: the bits of two timed runs", digest, first);
            first = digest;
        }
        lines[rep + 1] = line_ns(w);
    }
    for (int form = 0; form < form_count; form++)
        for (int k = 0; on[form] && k < kinds; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s %s", form_names[form], kind_names[k]);
            report(w, name, bytes, "us", samples[form][k], w->opt.reps, lines);
        }
}

static void report_number(const World *w, const char *name, int64_t value)
{
    double sum, mine = (double)value;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    report(w, name, 0, "", &sum, 1, NULL);
}

/* How many messages all ranks send, by size and by phase. */
static void take_census(const World *w, Lj *l, const Choice *c)
{
    lj_begin(l);
    lj_steps(l, form_mpi, 1, c->steps);
    expect_same("lj: messages of a rank", (uint64_t)messages_of(l), (uint64_t)lj_expected_messages(l, c->steps));
    const Census *n = &l->census;
    expect_same("lj: messages by size, and all", (uint64_t)(n->immediate + n->single + n->synergistic), (uint64_t)messages_of(l));
    report_number(w, "messages", messages_of(l));
    report_number(w, "messages per rank", w->rank == 0 ? messages_of(l) : 0);
    report_number(w, "within a node", n->node_local);
    report_number(w, "below 256 B", n->immediate);
    report_number(w, "below 8 KiB", n->single);
    report_number(w, "8 KiB and more", n->synergistic);
    static const char *const phases[lj_phases] = {"migration", "borders", "forward", "reverse"};
    for (int phase = 0; phase < lj_phases; phase++)
        report_number(w, phases[phase], n->by_phase[phase]);
}

int main(int argc, char **argv)
{
    static World w;
    static Lj l;
    Choice c = {.atoms_per_rank = 1000, .steps = 200, .check_steps = 100, .rebuild_every = 20, .forms = "all", .cells = ""};
    const Flag flags[] = {
        {"--atoms", flag_int, &c.atoms_per_rank, "atoms for each rank at least, in a cube (1000)"},
        {"--cells", flag_text, &c.cells, "A,B,C: the box in cells of four atoms, instead"},
        {"--steps", flag_int, &c.steps, "steps that are timed (200)"},
        {"--check-steps", flag_int, &c.check_steps, "steps that are compared with a serial run (100)"},
        {"--rebuild-every", flag_int, &c.rebuild_every, "steps between two migrations (20)"},
        {"--form", flag_text, &c.forms, "mpi, opi, shared, fused, several with commas, or all (all)"},
        {"--ranks-per-node", flag_int, &c.ranks_per_node, "take runs of so many ranks for nodes (0: as they are)"},
        {"--check", flag_set, &c.check_only, "only check the results, without timing"},
        {"--census", flag_set, &c.census, "only count the messages of so many steps, by size and phase"},
        {0}};
    app_start(&w, &argc, &argv, "weft-lj: molecular dynamics of a Lennard-Jones liquid; its exchanges in four forms", flags, 1);
    if (c.steps < 1 || c.check_steps < 1 || c.rebuild_every < 1 || c.atoms_per_rank < 1)
        fail("steps, atoms and --rebuild-every are at least 1");
    bool on[form_count];
    parse_forms(c.forms, on);
    LjSetup setup = setup_of(&c, w.size);
    lj_open(&l, MPI_COMM_WORLD, &setup);
    if (strcmp(c.forms, "all") == 0 && !l.arena.shared) {
        on[form_shared] = on[form_fused] = false;
        if (w.rank == 0)
            fputs("# no memory is shared here: the forms shared and fused are left out\n", stderr);
    }
    if (c.census)
        take_census(&w, &l, &c);
    else
        check(&w, &l, &c, on);
    if (!c.census && !c.check_only)
        measure_all(&w, &l, &c, on);
    lj_close(&l);
    app_end();
    return 0;
}
