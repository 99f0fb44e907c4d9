/* The cache simulator against what can be said without it: capacities, sets, coherence; and its invariants on random accesses. */
#include "pollution/cachesim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void same(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        printf("%s: %" PRIu64 " instead of %" PRIu64 "\n", what, got, want);
        failures++;
    }
}

static CacheSim *open_sim(void)
{
    CacheShape shape = cachesim_sandy_bridge();
    CacheSim *s = cachesim_open(&shape);
    if (!s)
        abort();
    return s;
}

static CacheCounts sweep(CacheSim *s, int core, size_t bytes)
{
    cachesim_forget_counts(s);
    for (uint64_t at = 0; at < bytes; at += 8)
        cachesim_access(s, core, at, 8, false);
    return cachesim_counts(s, core);
}

/* A second pass finds everything where the level holds it, and nothing where it is one line too small for sequential order. */
static void capacities(void)
{
    static const struct {
        size_t bytes;
        uint64_t missing[3]; /* lines of the second pass that are not in level 1, 2, 3: all or none */
    } passes[] = {{32 << 10, {0, 0, 0}}, {64 << 10, {1, 0, 0}}, {256 << 10, {1, 0, 0}}, {512 << 10, {1, 1, 0}}, {20 << 20, {1, 1, 0}},
                  {40 << 20, {1, 1, 1}}};
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        CacheSim *s = open_sim();
        size_t bytes = passes[i].bytes;
        CacheCounts cold = sweep(s, 0, bytes), warm = sweep(s, 0, bytes);
        char what[64];
        for (int level = 0; level < 3; level++) {
            snprintf(what, sizeof what, "%zu KiB, level %d", bytes >> 10, level + 1);
            same(what, cold.misses[level], bytes / 64);
            same(what, warm.misses[level], passes[i].missing[level] * bytes / 64);
        }
        same("accesses", warm.accesses, bytes / 8);
        cachesim_close(s);
    }
}

/* Nine lines of one set do not fit eight ways: in turn, each is gone when it is needed again. Eight do. */
static void conflicts(void)
{
    for (uint64_t lines = 8; lines <= 9; lines++) {
        CacheSim *s = open_sim();
        for (int pass = 0; pass < 2; pass++) {
            cachesim_forget_counts(s);
            for (uint64_t i = 0; i < lines; i++)
                cachesim_access(s, 0, i * 4096, 1, false); /* 64 sets of 64 bytes */
        }
        same("conflicting lines, level 1", cachesim_counts(s, 0).misses[0], lines == 9 ? 9 : 0);
        same("conflicting lines, level 2", cachesim_counts(s, 0).misses[1], 0);
        cachesim_close(s);
    }
}

static void least_recently_used(void)
{
    CacheSim *s = open_sim();
    for (uint64_t i = 0; i < 8; i++)
        cachesim_access(s, 0, i * 4096, 1, false);
    cachesim_access(s, 0, 0, 1, false);        /* the oldest is young again */
    cachesim_access(s, 0, 8 * 4096, 1, false); /* and the second is the one that goes */
    cachesim_forget_counts(s);
    cachesim_access(s, 0, 0, 1, false);
    same("the line used again", cachesim_counts(s, 0).misses[0], 0);
    cachesim_access(s, 0, 4096, 1, false);
    same("the least recently used line", cachesim_counts(s, 0).misses[0], 1);
    cachesim_close(s);
}

static void coherence(void)
{
    CacheSim *s = open_sim();
    cachesim_access(s, 0, 0, 64, true);
    cachesim_access(s, 1, 0, 64, false); /* changed there: here it misses, but not in the third level */
    CacheCounts reader = cachesim_counts(s, 1);
    same("reader's misses", reader.misses[1], 1);
    same("reader's misses in level 3", reader.misses[2], 0);
    same("reader got it from the writer", reader.from_other, 1);
    same("the writer keeps it", cachesim_counts(s, 0).lost, 0);
    cachesim_access(s, 0, 0, 8, false);
    same("the writer reads on without a miss", cachesim_counts(s, 0).misses[0], 1);
    cachesim_access(s, 0, 8, 8, true); /* other bytes of the line: still taken from the reader */
    same("the reader loses it", cachesim_counts(s, 1).lost, 1);
    cachesim_access(s, 1, 32, 8, false);
    same("and misses again", cachesim_counts(s, 1).misses[0], 2);
    cachesim_forget_counts(s);
    for (int i = 0; i < 100; i++)
        cachesim_access(s, i % 2, 0, 8, true);
    same("a line written in turns misses each time but the first", cachesim_counts(s, 0).misses[0] + cachesim_counts(s, 1).misses[0], 99);
    same("is lost each time", cachesim_counts(s, 0).lost + cachesim_counts(s, 1).lost, 100);
    cachesim_forget_counts(s);
    cachesim_access(s, 0, 1 << 20, 8, false);
    cachesim_access(s, 0, 1 << 20, 8, true); /* exclusive: a store tells nobody */
    cachesim_access(s, 0, 60, 8, false);     /* two lines */
    same("accesses across a boundary", cachesim_counts(s, 0).accesses, 4);
    cachesim_close(s);
}

/* The third level's victim leaves the first and second, too. */
static void inclusion(void)
{
    CacheShape tiny = {{2 * 64, 4 * 64, 8 * 64}, {2, 4, 8}};
    CacheSim *s = cachesim_open(&tiny);
    cachesim_access(s, 0, 0, 1, true);
    for (uint64_t i = 1; i <= 8; i++)
        cachesim_access(s, 1, i * 64, 1, false);
    cachesim_forget_counts(s);
    cachesim_access(s, 0, 0, 1, false);
    same("a line that the third level let go", cachesim_counts(s, 0).misses[2], 1);
    cachesim_close(s);
    CacheShape odd = {{1000, 256, 512}, {2, 4, 8}};
    same("a shape that is none", cachesim_open(&odd) == NULL, 1);
}

static void invariants(void)
{
    CacheShape tiny = {{8 * 64, 16 * 64, 64 * 64}, {2, 4, 4}};
    CacheSim *s = cachesim_open(&tiny);
    uint64_t word = 1, total = 0;
    for (int i = 0; i < 200000; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        uint64_t r = word >> 33;
        cachesim_access(s, (int)(r & 1), (r >> 4) % 128 * 64, 1, (r >> 1) % 4 == 0);
        total++;
        const char *wrong = i % 64 ? NULL : cachesim_unsound(s);
        if (wrong) {
            printf("after %d accesses: %s\n", i, wrong);
            failures++;
            break;
        }
    }
    CacheCounts a = cachesim_counts(s, 0), b = cachesim_counts(s, 1);
    same("accesses of both", a.accesses + b.accesses, total);
    same("fewer misses further down", a.misses[0] >= a.misses[1] && a.misses[1] >= a.misses[2] && a.misses[2] > 0, 1);
    cachesim_close(s);
}

int main(void)
{
    capacities();
    conflicts();
    least_recently_used();
    coherence();
    inclusion();
    invariants();
    printf("%s\n", failures ? "failed" : "passed");
    return failures ? 1 : 0;
}
