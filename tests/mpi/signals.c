// weft_signal.h as ranks use it: in memory of MPI_Alloc_mem that both address. Litmus tests: what was written before a signal or
// an addition is seen after it (message passing), and of two that add and then look not both miss the other (store buffering).
#include "check.h"
#include <weft_signal.h>

enum { rounds = 20000, words = 16 };

typedef struct Side {
    weft_signal full;
    weft_counter turns, flag;
    int64_t data[words];
    int64_t saw[rounds];
} Side;

static Side *side[2];

static void meet(int64_t *seen) {
    int64_t mine = weft_counter_add(&side[rank]->turns, 1);
    weft_counter_wait_gt(&side[1 - rank]->turns, mine);
    *seen = mine;
}

// Rank 0 writes plain words and sets; rank 1 reads them and clears, which allows the next ones.
static void message_passing(void) {
    Side *to = side[1];
    for (int64_t i = 1; i <= rounds; i++) {
        weft_signal_wait(&to->full, rank == 0 ? 0 : 1);
        for (int w = 0; w < words; w++) {
            if (rank == 0) to->data[w] = i * words + w;
            else CHECK(to->data[w] == i * words + w, "round %lld, word %d: %lld", (long long)i, w, (long long)to->data[w]);
        }
        if (rank == 0) weft_signal_set(&to->full);
        else weft_signal_clear(&to->full);
    }
}

static void store_buffering(void) {
    int64_t turn, before = side[rank]->flag.value;
    CHECK(before == 0, "fresh memory holds %lld", (long long)before);
    for (int i = 0; i < rounds; i++) {
        meet(&turn);
        CHECK(weft_counter_add(&side[rank]->flag, 1) == i, "the value before is not returned");
        side[rank]->saw[i] = weft_counter_get(&side[1 - rank]->flag) > i;
        meet(&turn);
        CHECK(side[0]->saw[i] || side[1]->saw[i], "round %d: both additions were missed", i);
        meet(&turn);
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size == 2, "two ranks");
    if (getenv("WEFT_WIRE") && strcmp(getenv("WEFT_WIRE"), "sock") == 0) {
        if (rank == 0) puts("skipped: ranks that talk by sockets share no memory");
        finish();
        return 77;
    }
    OK(MPI_Alloc_mem(sizeof(Side), MPI_INFO_NULL, &side[rank]));
    memset(side[rank], 0, sizeof(Side));
    CHECK((uintptr_t)side[rank] % 64 == 0, "address %p", (void*)side[rank]);
    MPI_Aint mine = (MPI_Aint)side[rank], both[2];
    OK(MPI_Allgather(&mine, 1, MPI_AINT, both, 1, MPI_AINT, MPI_COMM_WORLD));
    side[1 - rank] = (Side*)both[1 - rank];
    message_passing();
    store_buffering();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Free_mem(side[rank]));
    return finish();
}
