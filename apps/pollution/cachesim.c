#include "pollution/cachesim.h"

#include <stdlib.h>

/* A private line is shared if the other core may have it too, else exclusive, or changed. */
typedef enum State { absent, shared, exclusive, changed } State;

typedef struct Line {
    uint64_t number; /* address / 64 */
    uint64_t used;   /* when */
    State state;
} Line;

typedef struct Cache {
    Line *lines;     /* ways of set 0, of set 1, ... */
    size_t sets;
    int ways;
} Cache;

struct CacheSim {
    Cache own[cachesim_cores][2], common;
    CacheCounts counts[cachesim_cores];
    uint64_t now;
};

CacheShape cachesim_sandy_bridge(void)
{
    return (CacheShape){{32 << 10, 256 << 10, 20 << 20}, {8, 8, 20}};
}

static bool open_cache(Cache *c, size_t bytes, int ways)
{
    c->ways = ways;
    c->sets = ways > 0 ? bytes / cachesim_line / (size_t)ways : 0;
    if (c->sets == 0 || c->sets * (size_t)ways * cachesim_line != bytes)
        return false;
    c->lines = calloc(c->sets * (size_t)ways, sizeof *c->lines);
    return c->lines != NULL;
}

void cachesim_close(CacheSim *s)
{
    for (int core = 0; core < cachesim_cores; core++)
        for (int level = 0; level < 2; level++)
            free(s->own[core][level].lines);
    free(s->common.lines);
    free(s);
}

CacheSim *cachesim_open(const CacheShape *shape)
{
    CacheSim *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    bool good = open_cache(&s->common, shape->bytes[2], shape->ways[2]);
    for (int core = 0; core < cachesim_cores; core++)
        for (int level = 0; level < 2; level++)
            good = open_cache(&s->own[core][level], shape->bytes[level], shape->ways[level]) && good;
    if (good)
        return s;
    cachesim_close(s);
    return NULL;
}

static Line *set_of(const Cache *c, uint64_t number) { return c->lines + number % c->sets * (size_t)c->ways; }

static Line *find(const Cache *c, uint64_t number)
{
    Line *set = set_of(c, number);
    for (int i = 0; i < c->ways; i++)
        if (set[i].state != absent && set[i].number == number)
            return &set[i];
    return NULL;
}

/* The state of a line in a core: both of its levels agree. */
static State state_in(const CacheSim *s, int core, uint64_t number)
{
    for (int level = 0; level < 2; level++) {
        const Line *line = find(&s->own[core][level], number);
        if (line)
            return line->state;
    }
    return absent;
}

static void set_state(CacheSim *s, int core, uint64_t number, State state)
{
    for (int level = 0; level < 2; level++) {
        Line *line = find(&s->own[core][level], number);
        if (line)
            line->state = state;
    }
}

/* A free place, or that of the least recently used line, which the caller has to let go. */
static Line *place_for(const Cache *c, uint64_t number)
{
    Line *set = set_of(c, number), *oldest = set;
    for (int i = 0; i < c->ways; i++) {
        if (set[i].state == absent)
            return &set[i];
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    return oldest;
}

/* Into a private level. What leaves it may stay in the other one; what leaves both has gone back to the third level. */
static void insert(CacheSim *s, int core, int level, uint64_t number, State state)
{
    Line *line = find(&s->own[core][level], number);
    if (!line)
        line = place_for(&s->own[core][level], number);
    *line = (Line){number, s->now, state};
}

static void insert_common(CacheSim *s, uint64_t number)
{
    Line *line = place_for(&s->common, number);
    for (int core = 0; core < cachesim_cores && line->state != absent; core++)
        set_state(s, core, line->number, absent); /* the third level includes the others */
    *line = (Line){number, s->now, shared};
}

/* What a store, or a load of a line that the other core has for itself, does there. */
static void tell_other(CacheSim *s, int core, uint64_t number, bool store)
{
    int other = 1 - core;
    State theirs = state_in(s, other, number);
    if (theirs == absent)
        return;
    s->counts[other].lost += store;
    set_state(s, other, number, store ? absent : shared);
}

static void miss(CacheSim *s, int core, uint64_t number, bool store)
{
    CacheCounts *c = &s->counts[core];
    c->misses[1]++;
    c->from_other += state_in(s, 1 - core, number) == changed;
    Line *common = find(&s->common, number);
    if (common) {
        common->used = s->now;
    } else {
        c->misses[2]++;
        insert_common(s, number);
    }
    tell_other(s, core, number, store);
    State state = store ? changed : state_in(s, 1 - core, number) == absent ? exclusive : shared;
    insert(s, core, 1, number, state);
    insert(s, core, 0, number, state);
}

static void touch(CacheSim *s, int core, uint64_t number, bool store)
{
    s->now++;
    s->counts[core].accesses++;
    Line *first = find(&s->own[core][0], number), *second = find(&s->own[core][1], number);
    if (!first)
        s->counts[core].misses[0]++;
    if (!first && !second) {
        miss(s, core, number, store);
        return;
    }
    State state = first ? first->state : second->state;
    if (store && state == shared)
        tell_other(s, core, number, true);
    state = store ? changed : state;
    insert(s, core, 0, number, state);
    if (second)
        second->state = state;
}

void cachesim_access(CacheSim *s, int core, uint64_t address, size_t bytes, bool store)
{
    uint64_t last = (address + (bytes ? bytes : 1) - 1) / cachesim_line;
    for (uint64_t number = address / cachesim_line; number <= last; number++)
        touch(s, core, number, store);
}

void cachesim_forget_counts(CacheSim *s)
{
    for (int core = 0; core < cachesim_cores; core++)
        s->counts[core] = (CacheCounts){0};
}

CacheCounts cachesim_counts(const CacheSim *s, int core) { return s->counts[core]; }

const char *cachesim_unsound(const CacheSim *s)
{
    for (int core = 0; core < cachesim_cores; core++)
        for (int level = 0; level < 2; level++) {
            const Cache *c = &s->own[core][level];
            for (size_t i = 0; i < c->sets * (size_t)c->ways; i++) {
                const Line *line = &c->lines[i];
                if (line->state == absent)
                    continue;
                if (!find(&s->common, line->number))
                    return "a private line is missing in the third level";
                const Line *twin = find(&s->own[core][1 - level], line->number);
                if (twin && twin->state != line->state)
                    return "a line has two states in one core";
                if (line->state != shared && state_in(s, 1 - core, line->number) != absent)
                    return "a line is exclusive in one core and present in the other";
            }
        }
    return NULL;
}
