// Scatter, gather and all-to-all by ownership passing (weft_opi.h), each root in turn, small and large blocks.
#include "check.h"
#include <weft_opi.h>

enum { turns = 20, tag = 5 };

static int* new_block(int count, int from, int to, int turn) {
    int* p;
    OK(OPI_Alloc((void**)&p, (size_t)count * sizeof *p));
    for (int i = 0; i < count; i++) p[i] = (from * 100 + to) * 1000 + turn + i;
    return p;
}

static void check_and_free(void** block, int count, int from, int to, int turn) {
    const int* p = *block;
    for (int i = 0; i < count; i++) CHECK(p[i] == (from * 100 + to) * 1000 + turn + i, "block from %d to %d: element %d is %d", from, to, i, p[i]);
    OK(OPI_Free(block));
}

static void check_turn(void** blocks, int count, int turn) {
    const int root = turn % size;
    void* mine = NULL;
    for (int i = 0; i < size; i++) blocks[i] = rank == root ? new_block(count, root, i, turn) : NULL;
    OK(opi_scatter(blocks, count, MPI_INT, root, tag, MPI_COMM_WORLD, &mine));
    for (int i = 0; i < size; i++) CHECK(blocks[i] == NULL, "block %d is left at the root", i);
    check_and_free(&mine, count, root, rank, turn);

    mine = new_block(count, rank, root, turn);
    OK(opi_gather(&mine, count, MPI_INT, root, tag, MPI_COMM_WORLD, blocks));
    CHECK(mine == NULL, "the block was not given");
    for (int i = 0; rank == root && i < size; i++) check_and_free(&blocks[i], count, i, root, turn);

    for (int i = 0; i < size; i++) blocks[i] = new_block(count, rank, i, turn);
    OK(opi_alltoall(blocks, count, MPI_INT, tag, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) check_and_free(&blocks[i], count, i, rank, turn);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    void** blocks = calloc((size_t)size, sizeof *blocks);
    for (int turn = 0; turn < turns; turn++) check_turn(blocks, turn % 3 ? 100 : 50000, turn);
    free(blocks);
    return finish();
}
