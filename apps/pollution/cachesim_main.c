/* weft-cachesim: reads accesses from its input and prints the misses. A line is `CORE L|S ADDRESS BYTES` (the address in hexadecimal; L
 * loads, S stores), `forget`, which begins the counts anew, or `counts NAME`, which prints those of both cores as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pollution/cachesim.h"

static void print_counts(const CacheSim *s, const char *name)
{
    printf("{\"name\":\"%s\",\"cores\":[", name);
    for (int core = 0; core < cachesim_cores; core++) {
        CacheCounts c = cachesim_counts(s, core);
        printf("%s{\"accesses\":%" PRIu64 ",\"l1\":%" PRIu64 ",\"l2\":%" PRIu64 ",\"l3\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"from_other\":%" PRIu64 "}",
               core ? "," : "", c.accesses, c.misses[0], c.misses[1], c.misses[2], c.lost, c.from_other);
    }
    puts("]}");
}

int main(void)
{
    CacheShape shape = cachesim_sandy_bridge();
    CacheSim *s = cachesim_open(&shape);
    char text[256], name[128], kind;
    if (!s) {
        fputs("weft-cachesim: no memory\n", stderr);
        return 1;
    }
    for (long number = 1; fgets(text, sizeof text, stdin); number++) {
        int core;
        uint64_t address;
        size_t bytes;
        if (sscanf(text, "%d %c %" SCNx64 " %zu", &core, &kind, &address, &bytes) == 4 && core >= 0 && core < cachesim_cores &&
            (kind == 'L' || kind == 'S')) {
            cachesim_access(s, core, address, bytes, kind == 'S');
        } else if (strcmp(text, "forget\n") == 0) {
            cachesim_forget_counts(s);
        } else if (sscanf(text, "counts %127[^\n]", name) == 1) {
            print_counts(s, name);
        } else {
            fprintf(stderr, "weft-cachesim: line %ld is no access, \"forget\" or \"counts NAME\": %s", number, text);
            cachesim_close(s);
            return 1;
        }
    }
    cachesim_close(s);
    return 0;
}
