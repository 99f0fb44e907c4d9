/* weft-sem: conjugate gradients on a spectral-element mass matrix, checked against integrals, the known solution and a serial run; timed with
 * all ranks on one mesh, and with each rank alone on a mesh of its own, which is the same work without messages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sem/sem.h"

typedef struct Choice {
    int order, gauss, iterations;
    bool check_only, no_check;
} Choice;

/* Three factors of n, as near each other as can be, growing. */
static void factors(int n, int of[3])
{
    int least = n + 2; /* of 1, 1 and n */
    memcpy(of, (int[3]){1, 1, n}, 3 * sizeof(int));
    for (int x = 1; x * x * x <= n; x++)
        for (int y = x; x * y * y <= n; y++)
            if (n % (x * y) == 0 && x + y + n / (x * y) < least) {
                least = x + y + n / (x * y);
                memcpy(of, (int[3]){x, y, n / (x * y)}, 3 * sizeof(int));
            }
}

/* A brick is longest where there are the fewest ranks: the whole comes near a cube. */
static SemSetup setup_of(const Choice *c, int ranks, int elements)
{
    SemSetup s = {.order = c->order, .gauss = c->gauss ? c->gauss : (3 * (c->order + 1) + 1) / 2};
    int brick[3];
    factors(ranks, s.grid);
    factors(elements, brick);
    for (int d = 0; d < 3; d++)
        s.brick[d] = brick[2 - d];
    return s;
}

/* The whole mesh, or another part of it, for one rank. */
static SemSetup for_one_rank(const SemSetup *whole, bool all_elements)
{
    SemSetup s = *whole;
    for (int d = 0; d < 3; d++) {
        s.brick[d] *= all_elements ? s.grid[d] : 1;
        s.grid[d] = 1;
    }
    return s;
}

/* ---- data: a value for each point of the cube, the same in every copy */

static int64_t number_of(const Sem *s, size_t i)
{
    int64_t at[3], wide[3];
    sem_place(s, i, at);
    for (int d = 0; d < 3; d++)
        wide[d] = (int64_t)s->setup.grid[d] * s->setup.brick[d] * s->setup.order + 1;
    return (at[2] * wide[1] + at[1]) * wide[0] + at[0];
}

static double solution_at(int64_t point) { return 1 + unit_interval((uint64_t)point); }

/* f = B times the known solution. */
static void make_right_side(Sem *s)
{
    for (size_t i = 0; i < s->length; i++)
        s->p[i] = solution_at(number_of(s, i));
    sem_apply_mass(s, s->p, s->f);
    sem_assemble(s, s->f);
}

/* ---- checks */

/* The integral of (x y z)^(2N) over the cube: its factor (x y z)^N is a function of the elements, and the quadrature is exact for it. */
static void check_integral(Sem *s)
{
    int order = s->setup.order;
    for (size_t i = 0; i < s->length; i++) {
        int64_t at[3];
        sem_place(s, i, at);
        s->p[i] = 1;
        for (int d = 0; d < 3; d++)
            s->p[i] *= pow(sem_coordinate(s, d, at[d]), order);
    }
    sem_apply_mass(s, s->p, s->q);
    sem_assemble(s, s->q);
    double want = pow(2 * order + 1, -3);
    expect_close("sem: an integral over the cube, in shares of it", sem_dot(s, s->p, s->q) / want, 1, 1e-11);
}

static double largest_difference(const Sem *s, const double *want)
{
    double most = 0;
    for (size_t i = 0; i < s->length; i++) {
        int64_t point = number_of(s, i);
        most = fmax(most, fabs(s->u[i] - (want ? want[point] : solution_at(point))));
    }
    return most;
}

/* The solution of the whole mesh by rank 0 alone, by the number of its points, on all ranks; the iterations it took. */
static double *serial_solution(const World *w, const Sem *s, int *iterations)
{
    size_t points = 1;
    for (int d = 0; d < 3; d++)
        points *= (size_t)(s->setup.grid[d] * s->setup.brick[d] * s->setup.order + 1);
    double *values = new_buffer(sizeof(double) * points);
    if (w->rank == 0) {
        static Sem alone;
        SemSetup whole = for_one_rank(&s->setup, true);
        sem_open(&alone, MPI_COMM_SELF, &whole);
        make_right_side(&alone);
        *iterations = sem_solve(&alone, 3000, 1e-15);
        for (size_t i = 0; i < alone.length; i++)
            values[number_of(&alone, i)] = alone.u[i];
        sem_close(&alone);
    }
    MPI_Bcast(iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(values, (int)points, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return values;
}

static void check(const World *w, Sem *s)
{
    int iterations = 0;
    double *serial = serial_solution(w, s, &iterations);
    check_integral(s);
    make_right_side(s);
    if (!sem_copies_agree(s))
        fail("sem: ranks have different values of a point that they share");
    sem_solve(s, iterations, 0);
    double from_serial = greatest_of(s->comm, largest_difference(s, serial)), from_known = greatest_of(s->comm, largest_difference(s, NULL));
    expect_close("sem: the solution against the serial one", from_serial, 0, 1e-10);
    expect_close("sem: the solution against the known one", from_known, 0, 1e-10);
    if (w->rank == 0 && !w->opt.json)
        printf("# order %d, %d Gauss points, %d x %d x %d ranks of %d x %d x %d elements; after %d iterations %.1e from the serial "
               "solution, %.1e from the known one\n", s->setup.order, s->setup.gauss, s->setup.grid[0], s->setup.grid[1],
               s->setup.grid[2], s->setup.brick[0], s->setup.brick[1], s->setup.brick[2], iterations, from_serial, from_known);
    free(serial);
}

/* ---- times */

/* Microseconds for an iteration, of the slowest rank. */
static double measure(Sem *s, int iterations, int64_t solves)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_s();
    for (int64_t i = 0; i < solves; i++)
        sem_solve(s, iterations, 0);
    double took = now_s() - start;
    return greatest_of(MPI_COMM_WORLD, took) / (double)(solves * iterations) * 1e6;
}

static size_t largest_message(const Sem *s)
{
    size_t x = (size_t)s->width[0], y = (size_t)s->width[1], z = (size_t)s->width[2], most = 0;
    most = s->setup.grid[0] > 1 ? y * z : most;
    most = s->setup.grid[1] > 1 && x * z > most ? x * z : most;
    most = s->setup.grid[2] > 1 && x * y > most ? x * y : most;
    return sizeof(double) * most;
}

static void measure_all(const World *w, Sem *together, Sem *alone, int iterations)
{
    static double samples[2][max_samples], lines[max_samples + 1];
    Sem *of[2] = {together, alone};
    int64_t solves[2];
    for (int kind = 0; kind < 2; kind++)
        solves[kind] = agree(w, 1 + (int64_t)(w->opt.window_ms * 1e3 / measure(of[kind], iterations, 1) / iterations));
    lines[0] = line_ns(w);
    for (int rep = 0; rep < w->opt.reps; rep++) {
        for (int kind = 0; kind < 2; kind++)
            samples[kind][rep] = measure(of[kind], iterations, solves[kind]);
        lines[rep + 1] = line_ns(w);
    }
    for (int kind = 0; kind < 2; kind++) {
        char name[64];
        snprintf(name, sizeof name, "%s, %d elements", kind ? "work" : "iteration", together->elements);
        report(w, name, largest_message(together), "us", samples[kind], w->opt.reps, lines);
    }
}

static void run(const World *w, const Choice *c, int elements)
{
    static Sem together, alone;
    SemSetup setup = setup_of(c, w->size, elements), part = for_one_rank(&setup, false);
    if (setup.gauss <= setup.order || setup.gauss > sem_most_points)
        fail("order %d needs %d to %d Gauss points, not %d", setup.order, setup.order + 1, sem_most_points, setup.gauss);
    sem_open(&together, MPI_COMM_WORLD, &setup);
    if (!c->no_check)
        check(w, &together);
    if (!c->check_only) {
        sem_open(&alone, MPI_COMM_SELF, &part);
        make_right_side(&together);
        make_right_side(&alone);
        measure_all(w, &together, &alone, c->iterations);
        sem_close(&alone);
    }
    sem_close(&together);
}

int main(int argc, char **argv)
{
    static World w;
    const Options *o = &w.opt;
    Choice c = {.order = 5, .iterations = 20};
    const Flag flags[] = {
        {"--order", flag_int, &c.order, "N: N + 1 points of an element in each direction (5)"},
        {"--gauss", flag_int, &c.gauss, "M: Gauss points of an element in each direction (0: 3 (N + 1) / 2)"},
        {"--elements", flag_sizes, &w, "LO:HI: elements of each rank, doubling (1:128)"},
        {"--iterations", flag_int, &c.iterations, "of a solve; a window holds as many solves as fit (20)"},
        {"--check", flag_set, &c.check_only, "only check the results, without timing"},
        {"--no-check", flag_set, &c.no_check, "only time"},
        {0}};
    w.opt.window_ms = 20;
    w.opt.lo_bytes = 1; /* of elements here */
    w.opt.hi_bytes = 128;
    app_start(&w, &argc, &argv, "weft-sem: conjugate gradients on a spectral-element mass matrix", flags, 1);
    if (c.order < 1 || c.order >= sem_most_points || c.gauss < 0 || c.iterations < 1 || o->hi_bytes > 4096)
        fail("--order is 1 to %d, --iterations at least 1, --elements at most 4096", sem_most_points - 1);
    for (size_t elements = o->lo_bytes; elements <= o->hi_bytes; elements *= 2)
        run(&w, &c, (int)elements);
    app_end();
    return 0;
}
