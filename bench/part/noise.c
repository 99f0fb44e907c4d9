#include "noise.h"

#include <math.h>

static const uint32_t multiplier[2] = {0xD2511F53, 0xCD9E8D57}, weyl[2] = {0x9E3779B9, 0xBB67AE85};

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)multiplier[0] * c[0], b = (uint64_t)multiplier[1] * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        k[0] += weyl[0];
        k[1] += weyl[1];
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

void draw_pair(uint64_t seed, int rank, int thread, uint64_t step, double out[2])
{
    uint32_t counter[4] = {(uint32_t)step, (uint32_t)(step >> 32), (uint32_t)thread, (uint32_t)rank};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, words[4];
    philox(counter, key, words);
    for (int i = 0; i < 2; i++)
        out[i] = (double)(((uint64_t)words[2 * i + 1] << 32 | words[2 * i]) >> 11) * 0x1p-53;
}

double compute_time(const Noise *noise, int rank, int thread, uint64_t step, bool *clamped)
{
    double c = noise->compute_s, u[2];
    if (noise->model == noise_single)
        return thread == 0 ? c + c * noise->share : c;
    draw_pair(noise->seed, rank, thread, step, u);
    if (noise->model == noise_uniform)
        return c + c * noise->share * u[0];
    /* Box and Muller; 1 - u is never 0. */
    double value = c + c * noise->share * sqrt(-2 * log(1 - u[0])) * cos(2 * M_PI * u[1]);
    if (value < 0 && clamped)
        *clamped = true;
    return value < 0 ? 0 : value;
}
