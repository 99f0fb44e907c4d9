/* opi_fuse.h: what programs need that `weft opi-rewrite --fuse` has written: a rank tells its partner where an array of its own lies,
   and the partner, if it has the same memory at the same address, reads or writes there instead of exchanging a message. Memory is
   looked up in /proc/self/maps, so this holds for whatever the library or the program shares, and never for private memory. For one
   source of a program; calls come from one thread at a time. */
#ifndef OPI_FUSE_H_INCLUDED
#define OPI_FUSE_H_INCLUDED

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPI_LOCAL static inline __attribute__((unused))

/* Consecutive mappings of one file that the process shares. `end` is 0 for private memory. */
typedef struct opi_region {
    unsigned long long start, end, device, inode, offset;
} opi_region;

/* What a rank tells the partner that shall read or write its array: where the array lies, the values on which both must agree and
   those that indices need, and whether what it reads itself in this exchange lies apart from what is written into its memory. */
typedef struct opi_offer {
    opi_region region;
    const void *array;
    char machine[40];
    int apart;
    long long numbers[16];
} opi_offer;

static MPI_Comm opi_fuse_comm = MPI_COMM_NULL;
static long opi_fuse_count; /* loops that this rank has run over its own and a partner's memory */

/* Behind MPI_Init, by all ranks: messages of this header are apart from all others. */
OPI_LOCAL void opi_fuse_begin(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &opi_fuse_comm);
}

/* Before MPI_Finalize. With OPI_FUSE_REPORT set in the environment each rank says how many exchanges it has fused. */
OPI_LOCAL void opi_fuse_end(void)
{
    if (getenv("OPI_FUSE_REPORT")) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        fprintf(stderr, "opi_fuse: rank %d fused %ld exchanges\n", rank, opi_fuse_count);
    }
    MPI_Comm_free(&opi_fuse_comm);
}

OPI_LOCAL opi_region opi_region_of(const void *address)
{
    opi_region found = {0, 0, 0, 0, 0}, one;
    unsigned long long at = (unsigned long long)address, last_offset = 0;
    unsigned major, minor;
    char mode[5], line[4400];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &one.start, &one.end, mode, &one.offset, &major, &minor, &one.inode) != 7)
            continue;
        one.device = (unsigned long long)major << 32 | minor;
        int usable = mode[0] == 'r' && mode[1] == 'w' && mode[3] == 's' && one.inode != 0;
        if (usable && found.end == one.start && found.device == one.device && found.inode == one.inode && last_offset == one.offset) {
            found.end = one.end;
        } else if (found.end > at) {
            break;
        } else if (usable) {
            found = one;
        } else {
            found.end = 0;
        }
        last_offset = one.offset + (one.end - one.start);
    }
    if (maps)
        fclose(maps);
    if (!(found.start <= at && at < found.end))
        found.end = 0;
    return found;
}

OPI_LOCAL void opi_machine(char *name, size_t size)
{
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!id || !fgets(name, (int)size, id))
        name[0] = 0;
    if (id)
        fclose(id);
}

/* Fills in all but `apart` and the numbers. */
OPI_LOCAL void opi_offer_array(opi_offer *offer, const void *array)
{
    offer->array = array;
    offer->region = opi_region_of(array);
    opi_machine(offer->machine, sizeof offer->machine);
}

/* Whether the partner's array is the same memory here, at the same address. */
OPI_LOCAL int opi_addressable(const opi_offer *theirs)
{
    char machine[40];
    const opi_region *region = &theirs->region;
    if (!region->end)
        return 0;
    opi_machine(machine, sizeof machine);
    opi_region here = opi_region_of(theirs->array);
    return here.end && machine[0] && !strcmp(machine, theirs->machine) && here.device == region->device && here.inode == region->inode
        && here.start <= region->start && region->end <= here.end && here.offset + (region->start - here.start) == region->offset;
}

/* Sends one's own offer to `to` and receives that of `from`; an offer from MPI_PROC_NULL can never be used. */
OPI_LOCAL void opi_exchange_offers(const opi_offer *mine, int to, opi_offer *theirs, int from, int site)
{
    memset(theirs, 0, sizeof *theirs);
    MPI_Sendrecv(mine, sizeof *mine, MPI_BYTE, to, 2 * site, theirs, sizeof *theirs, MPI_BYTE, from, 2 * site, opi_fuse_comm, MPI_STATUS_IGNORE);
}

/* Tells `to` whether its memory has been read or written; returns what `from` says of one's own. What was done before is visible after. */
OPI_LOCAL int opi_exchange_done(int done, int to, int from, int site)
{
    int theirs = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    MPI_Sendrecv(&done, 1, MPI_INT, to, 2 * site + 1, &theirs, 1, MPI_INT, from, 2 * site + 1, opi_fuse_comm, MPI_STATUS_IGNORE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return theirs;
}

/* Whether the bytes from `a` up to `a_end` and those from `b` up to `b_end` have none in common. Without bytes they have not. */
OPI_LOCAL int opi_apart(const void *a, const void *a_end, const void *b, const void *b_end)
{
    return (const char *)a_end <= (const char *)b || (const char *)b_end <= (const char *)a || (const char *)a_end <= (const char *)a
        || (const char *)b_end <= (const char *)b;
}

#endif
