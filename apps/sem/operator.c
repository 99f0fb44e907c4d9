#include "sem/sem.h"

/* out[a][r][b] = sum over c of matrix[r][c] in[a][c][b], for b below `behind`. */
static void contract(const double *matrix, int rows, int columns, const double *in, int before, int behind, double *restrict out)
{
    for (int a = 0; a < before; a++, in += columns * behind)
        for (int r = 0; r < rows; r++, out += behind) {
            for (int b = 0; b < behind; b++)
                out[b] = matrix[r * columns] * in[b];
            for (int c = 1; c < columns; c++)
                for (int b = 0; b < behind; b++)
                    out[b] += matrix[r * columns + c] * in[c * behind + b];
        }
}

/* The last dimension, where nothing is behind: out[a][r] = sum over c of in[a][c] transposed[c][r]. */
static void contract_last(const double *transposed, int rows, int columns, const double *in, int before, double *restrict out)
{
    for (int a = 0; a < before; a++, in += columns, out += rows) {
        for (int r = 0; r < rows; r++)
            out[r] = transposed[r] * in[0];
        for (int c = 1; c < columns; c++)
            for (int r = 0; r < rows; r++)
                out[r] += transposed[c * rows + r] * in[c];
    }
}

/* By the weights of the Gauss points and the volume that an element has beside that of [-1, 1]^3. */
static void weigh(const Basis *b, double volume, double *values)
{
    for (int z = 0; z < b->m; z++)
        for (int y = 0; y < b->m; y++, values += b->m) {
            double row = volume * b->weight[z] * b->weight[y];
            for (int x = 0; x < b->m; x++)
                values[x] *= row * b->weight[x];
        }
}

static void apply_to_element(const Sem *s, double volume, const double *u, double *q)
{
    const Basis *b = &s->basis;
    double *one = s->scratch[0], *two = s->scratch[1];
    int n = b->n, m = b->m;
    contract_last(b->to_gll, m, n, u, n * n, one);
    contract(b->to_gauss, m, n, one, n, m, two);
    contract(b->to_gauss, m, n, two, 1, m * m, one);
    weigh(b, volume, one);
    contract(b->to_gll, n, m, one, 1, m * m, two);
    contract(b->to_gll, n, m, two, n, m, one);
    contract_last(b->to_gauss, n, m, one, n * n, q);
}

void sem_apply_mass(const Sem *s, const double *u, double *q)
{
    double volume = 1;
    size_t points = (size_t)s->basis.n * (size_t)s->basis.n * (size_t)s->basis.n;
    for (int d = 0; d < 3; d++)
        volume *= 0.5 / (s->setup.grid[d] * s->setup.brick[d]);
    for (int e = 0; e < s->elements; e++, u += points, q += points)
        apply_to_element(s, volume, u, q);
}
