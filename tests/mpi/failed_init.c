// Initialising fails, again and again, and then does not: nothing of the failures is left, neither descriptors nor mappings.
#include <dirent.h>
#include <sys/resource.h>

#include "check.h"

static int descriptors(void) {
    int n = 0;
    DIR* d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n;
}

// Lines of /proc/self/maps, and what all mappings take.
static int mappings(long* kib) {
    int n = 0;
    char line[1024];
    FILE* f = fopen("/proc/self/maps", "r");
    *kib = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2) *kib += (long)((to - from) / 1024);
        n++;
    }
    if (f != NULL) fclose(f);
    return n;
}

static void fail_once(int expected) {
    MPI_Session s;
    int code = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s), class_of = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class_of);
    if (expected && code == MPI_SUCCESS) {
        fprintf(stderr, "initialising succeeded where it cannot\n");
        exit(1);
    }
}

static void fail_many(const char* how) {
    long kib_before = 0, kib_after = 0;
    fail_once(1);
    const int fds = descriptors(), maps = mappings(&kib_before);
    for (int i = 0; i < 50; i++) fail_once(1);
    const int fds_after = descriptors(), maps_after = mappings(&kib_after);
    if (fds_after != fds || maps_after > maps + 4 || kib_after > kib_before + 1024) {
        fprintf(stderr, "%s: %d descriptors, then %d; %d mappings of %ld KiB, then %d of %ld\n", how, fds, fds_after, maps, kib_before, maps_after, kib_after);
        exit(1);
    }
}

int main(int argc, char** argv) {
    setenv("WEFT_EAGER_MAX", "nonsense", 1);
    fail_many("a wrong setting");
    unsetenv("WEFT_EAGER_MAX");
    // The node's segment takes more address space than is left.
    struct rlimit all, little;
    long kib;
    getrlimit(RLIMIT_AS, &all);
    mappings(&kib);
    little = all;
    little.rlim_cur = (rlim_t)(kib + 512) * 1024;
    if (argc > 1 && setrlimit(RLIMIT_AS, &little) == 0) {
        fail_many("no address space");
        setrlimit(RLIMIT_AS, &all);
    }
    start(&argc, &argv);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
    return finish();
}
