#include <stdlib.h>
#include <string.h>

#include "sem/sem.h"

enum { tag = 10 };

/* Directions are numbered by their offsets, z before y before x: from every rank the neighbours and itself stand in the order of their
 * places in the cube. */
static int offset(int direction, int d) { return direction / (d == 0 ? 1 : d == 1 ? 3 : 9) % 3 - 1; }
static int opposite(int direction) { return sem_directions - 1 - direction; }

/* The points of the brick that are shared in a direction: [first, first + count) along dimension d. */
static int first_of(const Sem *s, int direction, int d) { return offset(direction, d) > 0 ? s->width[d] - 1 : 0; }
static int count_of(const Sem *s, int direction, int d) { return offset(direction, d) ? 1 : s->width[d]; }
static int points_of(const Sem *s, int direction)
{
    return count_of(s, direction, 0) * count_of(s, direction, 1) * count_of(s, direction, 2);
}

static int place_in_brick(const Sem *s, int x, int y, int z) { return (z * s->width[1] + y) * s->width[0] + x; }

typedef enum Way { pack, add } Way;

/* Between a buffer and the points shared in a direction: the brick's values into the buffer, or the buffer's added to the brick's. */
static void move_shared(const Sem *s, int direction, Way way, double *buffer, double *brick)
{
    int x = first_of(s, direction, 0), y = first_of(s, direction, 1), z = first_of(s, direction, 2);
    int nx = count_of(s, direction, 0);
    for (int k = 0; k < count_of(s, direction, 2); k++)
        for (int j = 0; j < count_of(s, direction, 1); j++, buffer += nx) {
            double *row = brick + place_in_brick(s, x, y + j, z + k);
            for (int i = 0; i < nx; i++)
                if (way == pack)
                    buffer[i] = row[i];
                else
                    row[i] += buffer[i];
        }
}

/* ---- between the elements and the brick of a rank */

static double *corner_of(const Sem *s, double *brick, int element)
{
    const int *b = s->setup.brick;
    int order = s->setup.order;
    return brick + place_in_brick(s, element % b[0] * order, element / b[0] % b[1] * order, element / b[0] / b[1] * order);
}

static void gather(const Sem *s, const double *u)
{
    int n = s->basis.n;
    memset(s->own, 0, sizeof(double) * (size_t)s->width[0] * (size_t)s->width[1] * (size_t)s->width[2]);
    for (int e = 0; e < s->elements; e++) {
        double *corner = corner_of(s, s->own, e);
        for (int z = 0; z < n; z++)
            for (int y = 0; y < n; y++, u += n) {
                double *row = corner + place_in_brick(s, 0, y, z);
                for (int x = 0; x < n; x++)
                    row[x] += u[x];
            }
    }
}

static void scatter(const Sem *s, double *u)
{
    int n = s->basis.n;
    for (int e = 0; e < s->elements; e++) {
        const double *corner = corner_of(s, s->own, e);
        for (int z = 0; z < n; z++)
            for (int y = 0; y < n; y++, u += n)
                memcpy(u, corner + place_in_brick(s, 0, y, z), sizeof(double) * (size_t)n);
    }
}

/* ---- between ranks */

static void exchange(Sem *s)
{
    MPI_Request requests[2 * sem_directions];
    int count = 0;
    for (int i = 0; i < sem_directions; i++)
        if (s->peer[i] != MPI_PROC_NULL)
            MPI_Irecv(s->receive[i], points_of(s, i), MPI_DOUBLE, s->peer[i], tag + opposite(i), s->comm, &requests[count++]);
    for (int i = 0; i < sem_directions; i++)
        if (s->peer[i] != MPI_PROC_NULL) {
            move_shared(s, i, pack, s->send[i], s->own);
            MPI_Isend(s->send[i], points_of(s, i), MPI_DOUBLE, s->peer[i], tag + i, s->comm, &requests[count++]);
        }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* In the order of directions, this rank's part in its place among them. */
static void add_up(Sem *s)
{
    for (int i = 0; i < s->surface_points; i++)
        s->sum[s->surface[i]] = 0;
    for (int i = 0; i < sem_directions; i++) {
        for (int k = 0; i == sem_here && k < s->surface_points; k++)
            s->sum[s->surface[k]] += s->own[s->surface[k]];
        if (s->peer[i] != MPI_PROC_NULL)
            move_shared(s, i, add, s->receive[i], s->sum);
    }
    for (int i = 0; i < s->surface_points; i++)
        s->own[s->surface[i]] = s->sum[s->surface[i]];
}

void sem_assemble(Sem *s, double *u)
{
    gather(s, u);
    if (s->size > 1) {
        exchange(s);
        add_up(s);
    }
    scatter(s, u);
}

/* Both sides send the points that they share in one order. */
bool sem_copies_agree(Sem *s)
{
    bool agree = true;
    exchange(s);
    for (int i = 0; i < sem_directions; i++)
        if (s->peer[i] != MPI_PROC_NULL)
            agree = agree && memcmp(s->send[i], s->receive[i], sizeof(double) * (size_t)points_of(s, i)) == 0;
    return agree;
}

/* ---- start and end */

void sem_place(const Sem *s, size_t i, int64_t at[3])
{
    size_t n = (size_t)s->basis.n, element = i / (n * n * n), in[3] = {i % n, i / n % n, i / n / n % n};
    for (int d = 0; d < 3; d++) {
        size_t along = (size_t)s->setup.brick[d];
        at[d] = ((int64_t)s->at[d] * (int64_t)along + (int64_t)(element % along)) * s->setup.order + (int64_t)in[d];
        element /= along;
    }
}

double sem_coordinate(const Sem *s, int d, int64_t index)
{
    int elements = s->setup.grid[d] * s->setup.brick[d], order = s->setup.order;
    int64_t element = index == (int64_t)elements * order ? elements - 1 : index / order;
    return ((double)element + 0.5 * (1 + s->basis.gll[index - element * order])) / elements;
}

static int rank_towards(const Sem *s, int direction)
{
    int to[3];
    for (int d = 0; d < 3; d++) {
        to[d] = s->at[d] + offset(direction, d);
        if (to[d] < 0 || to[d] >= s->setup.grid[d])
            return MPI_PROC_NULL;
    }
    return direction == sem_here ? MPI_PROC_NULL : (to[2] * s->setup.grid[1] + to[1]) * s->setup.grid[0] + to[0];
}

static double *new_vector(size_t length) { return new_buffer(sizeof(double) * length); }

static void find_surface(Sem *s)
{
    int *w = s->width;
    s->surface = new_buffer(sizeof(int) * 2 * (size_t)(w[0] * w[1] + w[1] * w[2] + w[2] * w[0]));
    for (int z = 0; z < w[2]; z++)
        for (int y = 0; y < w[1]; y++)
            for (int x = 0; x < w[0]; x++)
                if (x == 0 || x == w[0] - 1 || y == 0 || y == w[1] - 1 || z == 0 || z == w[2] - 1)
                    s->surface[s->surface_points++] = place_in_brick(s, x, y, z);
}

static void find_place(Sem *s)
{
    const int *grid = s->setup.grid, *brick = s->setup.brick;
    s->at[0] = s->rank % grid[0];
    s->at[1] = s->rank / grid[0] % grid[1];
    s->at[2] = s->rank / grid[0] / grid[1];
    s->elements = brick[0] * brick[1] * brick[2];
    s->length = (size_t)s->elements * (size_t)s->basis.n * (size_t)s->basis.n * (size_t)s->basis.n;
    for (int d = 0; d < 3; d++)
        s->width[d] = brick[d] * s->setup.order + 1;
    for (int i = 0; i < sem_directions; i++) {
        s->peer[i] = rank_towards(s, i);
        if (s->peer[i] != MPI_PROC_NULL) {
            s->send[i] = new_vector((size_t)points_of(s, i));
            s->receive[i] = new_vector((size_t)points_of(s, i));
        }
    }
}

/* The copies of a point, counted by adding up ones. */
static void find_shares(Sem *s)
{
    for (size_t i = 0; i < s->length; i++)
        s->share[i] = 1;
    sem_assemble(s, s->share);
    for (size_t i = 0; i < s->length; i++)
        s->share[i] = 1 / s->share[i];
}

void sem_open(Sem *s, MPI_Comm comm, const SemSetup *setup)
{
    memset(s, 0, sizeof *s);
    s->setup = *setup;
    s->comm = comm;
    MPI_Comm_rank(comm, &s->rank);
    MPI_Comm_size(comm, &s->size);
    sem_basis(&s->basis, setup->order, setup->gauss);
    find_place(s);
    find_surface(s);
    size_t points = (size_t)s->width[0] * (size_t)s->width[1] * (size_t)s->width[2], gauss = (size_t)s->basis.m;
    size_t element = gauss > (size_t)s->basis.n ? gauss : (size_t)s->basis.n;
    s->own = new_vector(points);
    s->sum = new_vector(points);
    double **vectors[] = {&s->share, &s->f, &s->u, &s->r, &s->p, &s->q};
    for (int i = 0; i < 6; i++)
        *vectors[i] = new_vector(s->length);
    for (int i = 0; i < 2; i++)
        s->scratch[i] = new_vector(element * element * element);
    find_shares(s);
}

void sem_close(Sem *s)
{
    for (int i = 0; i < sem_directions; i++) {
        free(s->send[i]);
        free(s->receive[i]);
    }
    double *vectors[] = {s->own, s->sum, s->share, s->f, s->u, s->r, s->p, s->q, s->scratch[0], s->scratch[1]};
    for (int i = 0; i < 10; i++)
        free(vectors[i]);
    free(s->surface);
}
