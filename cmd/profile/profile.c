#include "profile.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Counter {
    double seconds, bytes;
    long long calls, sized; /* sized: calls whose bytes are known */
} Counter;

typedef struct Thread {
    Counter counters[profile_most];
    struct Thread *next;
} Thread;

static _Atomic(Thread *) threads;
static __thread Thread *mine;
static __thread int depth; /* the library may call itself by the names that are counted here */
static _Atomic(void *) functions[profile_most];
static _Atomic bool counting, reported;
static double begin_s;

static const char *const category_names[profile_categories] = {"point-to-point", "completion", "collective", "one-sided", "files",
                                                                "communicators"};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The library with the standard ABI that this program has loaded, however it did; null where there is none. */
static void *library(void)
{
    static _Atomic(void *) handle;
    void *found = atomic_load(&handle);
    if (!found) {
        found = dlopen("libmpi_abi.so.1", RTLD_LAZY | RTLD_NOLOAD);
        atomic_store(&handle, found);
    }
    return found;
}

/* PMPI_X for "MPI_X". A library with another ABI gets its calls unchanged: an argument is a register here and there. */
static void *find(const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "P%s", name);
    void *from = library(), *found = dlsym(from ? from : RTLD_NEXT, symbol);
    if (!found) {
        fprintf(stderr, "weft profile: the MPI library of this program has no %s\n", symbol);
        abort();
    }
    return found;
}

ProfileCall profile_begin(int index)
{
    void *function = atomic_load_explicit(&functions[index], memory_order_acquire);
    if (!function) {
        function = find(profile_functions[index].name);
        atomic_store_explicit(&functions[index], function, memory_order_release);
    }
    ProfileCall call = {.function = function, .index = index, .counted = depth++ == 0 && atomic_load(&counting)};
    call.begin_s = call.counted ? now_s() : 0;
    return call;
}

static Thread *this_thread(void)
{
    if (mine)
        return mine;
    mine = calloc(1, sizeof *mine);
    if (!mine) {
        fputs("weft profile: no memory for a thread's counters\n", stderr);
        abort();
    }
    mine->next = atomic_load(&threads);
    while (!atomic_compare_exchange_weak(&threads, &mine->next, mine))
        ;
    return mine;
}

void profile_end(ProfileCall *call)
{
    depth--;
    if (!call->counted)
        return;
    Counter *counter = &this_thread()->counters[call->index];
    counter->seconds += now_s() - call->begin_s;
    counter->calls++;
}

void profile_add_bytes(int index, long long bytes)
{
    Counter *counter = &this_thread()->counters[index];
    if (bytes < 0)
        return;
    counter->bytes += (double)bytes;
    counter->sized++;
}

long long profile_bytes(MPI_Count count, MPI_Datatype type)
{
    static _Atomic(void *) type_size;
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL)
        return -1;
    if (!atomic_load(&type_size))
        atomic_store(&type_size, find("MPI_Type_size_c"));
    return ((int (*)(MPI_Datatype, MPI_Count *))atomic_load(&type_size))(type, &size) == MPI_SUCCESS ? count * size : -1;
}

/* What one rank, or all, spent in communication. */
typedef struct Totals {
    Counter counters[profile_most];
    double least_share, most_share, shares; /* of the ranks; their sum */
    double wall_s;                          /* the longest rank's */
    long long threads;                      /* all that called MPI */
    int ranks;
} Totals;

static bool is_communication(int index)
{
    return profile_functions[index].category != profile_files && profile_functions[index].category != profile_communicators;
}

/* This rank's own, before they are added up. */
static double add_threads(Totals *t)
{
    double seconds = 0;
    t->wall_s = now_s() - begin_s;
    for (Thread *thread = atomic_load(&threads); thread; thread = thread->next) {
        t->threads++;
        for (int i = 0; i < profile_count; i++) {
            t->counters[i].seconds += thread->counters[i].seconds;
            t->counters[i].bytes += thread->counters[i].bytes;
            t->counters[i].calls += thread->counters[i].calls;
            t->counters[i].sized += thread->counters[i].sized;
            seconds += is_communication(i) ? thread->counters[i].seconds : 0;
        }
    }
    return t->threads ? seconds / (t->wall_s * (double)t->threads) : 0;
}

typedef int Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);

/* Rank 0 gets the totals of the job; collective. */
static void reduce(Totals *t, double share)
{
    Reduce *call = (Reduce *)find("MPI_Reduce");
    double *from = calloc(4 * profile_most + 2, sizeof(double)), *to = calloc(4 * profile_most + 2, sizeof(double));
    double extremes[3] = {share, -share, t->wall_s}, reached[3] = {0};
    if (!from || !to)
        abort();
    for (int i = 0; i < profile_count; i++) {
        const Counter *c = &t->counters[i];
        memcpy(from + 4 * i, (double[4]){c->seconds, c->bytes, (double)c->calls, (double)c->sized}, 4 * sizeof(double));
    }
    from[4 * profile_count] = share;
    from[4 * profile_count + 1] = (double)t->threads;
    call(from, to, 4 * profile_count + 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    call(extremes, reached, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; i < profile_count; i++)
        t->counters[i] = (Counter){to[4 * i], to[4 * i + 1], (long long)to[4 * i + 2], (long long)to[4 * i + 3]};
    t->shares = to[4 * profile_count];
    t->threads = (long long)to[4 * profile_count + 1];
    t->most_share = reached[0];
    t->least_share = -reached[1];
    t->wall_s = reached[2];
    free(from);
    free(to);
}

static void write_json(FILE *out, const Totals *t)
{
    const char *gap = "";
    fprintf(out, "{\"ranks\":%d,\"threads\":%lld,\"wall_s\":%.9g,\"share\":%.9g,\"least_share\":%.9g,\"most_share\":%.9g,\"calls\":[",
            t->ranks, t->threads, t->wall_s, t->shares / t->ranks, t->least_share, t->most_share);
    for (int i = 0; i < profile_count; i++) {
        const Counter *c = &t->counters[i];
        if (!c->calls)
            continue;
        fprintf(out, "%s{\"name\":\"%s\",\"category\":\"%s\",\"calls\":%lld,\"seconds\":%.9g,\"mean_bytes\":", gap,
                profile_functions[i].name, category_names[profile_functions[i].category], c->calls, c->seconds);
        fprintf(out, c->sized ? "%.9g}" : "null}", c->bytes / (double)c->sized);
        gap = ",";
    }
    fputs("]}\n", out);
}

static void write_text(FILE *out, const Totals *t)
{
    fprintf(out, "weft profile: %d ranks, %.3f s; communication takes %.1f %% of the time (from %.1f to %.1f %% of a rank's)\n",
            t->ranks, t->wall_s, 100 * t->shares / t->ranks, 100 * t->least_share, 100 * t->most_share);
    for (int i = 0; i < profile_count; i++)
        if (t->counters[i].calls)
            fprintf(out, "  %-32s %10lld calls %12.6f s\n", profile_functions[i].name, t->counters[i].calls, t->counters[i].seconds);
}

static void report(void)
{
    const char *path = getenv("WEFT_PROFILE");
    Totals *t = calloc(1, sizeof *t);
    int rank = 0;
    if (!t)
        abort();
    atomic_store(&counting, false);
    ((int (*)(MPI_Comm, int *))find("MPI_Comm_rank"))(MPI_COMM_WORLD, &rank);
    ((int (*)(MPI_Comm, int *))find("MPI_Comm_size"))(MPI_COMM_WORLD, &t->ranks);
    reduce(t, add_threads(t));
    FILE *out = rank ? NULL : path ? fopen(path, "a") : stderr;
    if (!rank && !out)
        perror("weft profile: cannot write the report");
    else if (!rank && path)
        write_json(out, t);
    else if (!rank)
        write_text(out, t);
    if (out && out != stderr)
        fclose(out);
    free(t);
    atomic_store(&reported, true);
}

static void begin(int error)
{
    if (error != MPI_SUCCESS)
        return;
    if (!library()) {
        fputs("weft profile: this program's MPI library has another ABI than the standard's: nothing is counted\n", stderr);
        return;
    }
    begin_s = now_s();
    atomic_store(&counting, true);
}

int MPI_Init(int *argc, char ***argv)
{
    depth++;
    int error = ((int (*)(int *, char ***))find("MPI_Init"))(argc, argv);
    depth--;
    begin(error);
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    depth++;
    int error = ((int (*)(int *, char ***, int, int *))find("MPI_Init_thread"))(argc, argv, required, provided);
    depth--;
    begin(error);
    return error;
}

int MPI_Finalize(void)
{
    depth++;
    if (atomic_load(&counting))
        report();
    int error = ((int (*)(void))find("MPI_Finalize"))();
    depth--;
    return error;
}

/* A job is reported by its World Model's end; what ends otherwise must not look as if it had not communicated. */
__attribute__((destructor)) static void end(void)
{
    if (atomic_load(&counting) && !atomic_load(&reported))
        fputs("weft profile: a process ended before MPI_Finalize: its job has no report\n", stderr);
}
