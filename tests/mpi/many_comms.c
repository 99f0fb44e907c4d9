// Ten thousand communicators that exist at once, an allreduce on each: their memory comes back, also where some stay to the end.
#include "check.h"

enum { many = 10000, few = 100, kept_every = 2500 };
static MPI_Comm made[many];

static double resident_mb(void) {
    long all = 0, pages = 0;
    FILE* f = fopen("/proc/self/statm", "r");
    CHECK(f != NULL && fscanf(f, "%ld %ld", &all, &pages) == 2, "/proc/self/statm cannot be read");
    if (f != NULL) fclose(f);
    return (double)pages * 4096 / 1e6;
}

static void make(int n) {
    for (int i = 0; i < n; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &made[i]));
    for (int i = 0; i < n; i++) {
        int mine = rank + i, sum = -1;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, made[i]));
        CHECK(sum == size * (size - 1) / 2 + size * i, "communicator %d: %d", i, sum);
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    make(few);
    for (int i = 0; i < few; i++) OK(MPI_Comm_free(&made[i]));
    const double before = resident_mb();
    for (int round = 0; round < 2; round++) {
        make(many);
        // The other way round the second time; some survive the others for a while.
        for (int i = 0; i < many; i++) {
            int which = round == 0 ? i : many - 1 - i;
            if (which % kept_every != 0) OK(MPI_Comm_free(&made[which]));
        }
        for (int i = 0; i < many; i += kept_every) OK(MPI_Comm_free(&made[i]));
    }
    const double stays = resident_mb() - before;
#ifdef __SANITIZE_ADDRESS__
    const double at_most = 2;  // with the sanitizer's shadow and what it holds back
#else
    const double at_most = 1;
#endif
    CHECK(stays < at_most, "%.2f MB stay", stays);
    return finish();
}
