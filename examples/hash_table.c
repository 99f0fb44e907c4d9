/* A hash table that is spread over all processes, by one-sided communication alone.
 *
 * Every process holds an equal share of the slots in a window. A key's slot follows from the key; whoever inserts draws it by
 * compare-and-swap, and tries the next one if another key is there. Nobody takes part in the accesses of others.
 *
 * mpicc hash_table.c -o hash_table && mpiexec -n 4 ./hash_table [keys for each process]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Slot {
    int64_t key;    /* 0: free */
    int64_t value;
} Slot;

typedef struct Table {
    MPI_Win win;
    int64_t slots_each;
    int processes;
} Table;

static Table make_table(int64_t slots_each)
{
    Table t = {.slots_each = slots_each};
    Slot *mine;
    MPI_Comm_size(MPI_COMM_WORLD, &t.processes);
    MPI_Win_allocate(slots_each * (MPI_Aint)sizeof(Slot), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &t.win);
    for (int64_t i = 0; i < slots_each; i++)
        mine[i] = (Slot){0, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, t.win);
    return t;
}

static void free_table(Table *t)
{
    MPI_Win_unlock_all(t->win);
    MPI_Win_free(&t->win);
}

static uint64_t hash(int64_t key)
{
    uint64_t x = (uint64_t)key * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

/* Where slot number `i` of the whole table is: its process, and its place there in words. */
static int owner(const Table *t, uint64_t i, MPI_Aint *word)
{
    const uint64_t slot = i % ((uint64_t)t->slots_each * (uint64_t)t->processes);
    *word = (MPI_Aint)(slot % (uint64_t)t->slots_each * 2);
    return (int)(slot / (uint64_t)t->slots_each);
}

/* Adds `value` to what the key has. False when the table is full. */
static int add(Table *t, int64_t key, int64_t value)
{
    const uint64_t first = hash(key), slots = (uint64_t)t->slots_each * (uint64_t)t->processes;
    const int64_t nobody = 0;
    for (uint64_t i = 0; i < slots; i++) {
        MPI_Aint word;
        const int process = owner(t, first + i, &word);
        int64_t found;
        MPI_Compare_and_swap(&key, &nobody, &found, MPI_INT64_T, process, word, t->win);
        MPI_Win_flush(process, t->win);
        if (found != nobody && found != key)
            continue;
        MPI_Accumulate(&value, 1, MPI_INT64_T, process, word + 1, 1, MPI_INT64_T, MPI_SUM, t->win);
        return 1;
    }
    return 0;
}

/* The value of the key; 0 if it is not there. */
static int64_t look_up(Table *t, int64_t key)
{
    const uint64_t first = hash(key), slots = (uint64_t)t->slots_each * (uint64_t)t->processes;
    for (uint64_t i = 0; i < slots; i++) {
        MPI_Aint word;
        const int process = owner(t, first + i, &word);
        Slot s;
        MPI_Get(&s, 2, MPI_INT64_T, process, word, 2, MPI_INT64_T, t->win);
        MPI_Win_flush(process, t->win);
        if (s.key == key)
            return s.value;
        if (s.key == 0)
            return 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rank, size, bad = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int64_t keys = argc > 1 ? atoll(argv[1]) : 1000;
    Table table = make_table(2 * keys);
    /* All processes add to the same keys at once; each adds its rank + 1. */
    for (int64_t i = 0; i < keys; i++)
        if (!add(&table, 1 + (i + rank * 13) % keys, rank + 1))
            bad++;
    MPI_Win_flush_all(table.win);
    MPI_Barrier(MPI_COMM_WORLD);
    const int64_t expected = (int64_t)size * (size + 1) / 2;
    for (int64_t key = 1 + rank; key <= keys; key += size)
        if (look_up(&table, key) != expected)
            bad++;
    if (look_up(&table, keys + 1) != 0)
        bad++;
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lld keys on %d processes: %s\n", (long long)keys, size, bad ? "wrong" : "right");
    free_table(&table);
    MPI_Finalize();
    return bad != 0;
}
