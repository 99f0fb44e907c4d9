/* Two cores with private first and second levels of cache and a common third one, kept coherent: counts the misses of a sequence of
 * loads and stores where a machine's counters cannot be read. Lines of 64 bytes; least recently used line out; a store to a line
 * takes it from the other core; the third level includes the others. No timing, no prefetching: what it says is simulated.
 * One thread; needs no MPI. */
#ifndef WEFT_CACHESIM_H
#define WEFT_CACHESIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { cachesim_cores = 2, cachesim_levels = 3, cachesim_line = 64 };

typedef struct CacheShape {
    size_t bytes[cachesim_levels]; /* of one first, one second, and the third level */
    int ways[cachesim_levels];
} CacheShape;

/* 32 KiB, 256 KiB and 20 MiB: the machine of the shared-heap dissertation. */
CacheShape cachesim_sandy_bridge(void);

typedef struct CacheCounts {
    uint64_t accesses;                /* lines touched */
    uint64_t misses[cachesim_levels]; /* of these, not found in level 1, 2, 3 */
    uint64_t lost;                    /* lines this core had and a store of the other took away */
    uint64_t from_other;              /* misses for a line that the other core had changed */
} CacheCounts;

typedef struct CacheSim CacheSim;

CacheSim *cachesim_open(const CacheShape *shape); /* null: no memory, or a level that is no whole number of sets */
void cachesim_close(CacheSim *s);
/* All lines that [address, address + bytes) touches, once each, in order. */
void cachesim_access(CacheSim *s, int core, uint64_t address, size_t bytes, bool store);
void cachesim_forget_counts(CacheSim *s); /* the contents stay */
CacheCounts cachesim_counts(const CacheSim *s, int core);
/* 0, or what must hold and does not: a line in two states, a private line that the third level lacks. For tests. */
const char *cachesim_unsound(const CacheSim *s);

#endif
