#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void rewrite(void *buffer, size_t bytes, uint64_t stamp)
{
    unsigned char *to = buffer;
    size_t words = bytes / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = stamp + i;
        memcpy(to + 8 * i, &word, 8);
    }
    uint64_t last = stamp + words;
    memcpy(to + 8 * words, &last, bytes % 8);
}

void verify(const void *buffer, size_t bytes, uint64_t stamp, const char *what)
{
    const unsigned char *from = buffer;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = stamp + i / 8;
        size_t part = bytes - i < 8 ? bytes - i : 8;
        if (memcmp(from + i, &word, part) != 0)
            fail("%s: byte %zu of %zu does not hold what was sent", what, i, bytes);
    }
}

void *new_buffer(size_t bytes)
{
    void *buffer = malloc(bytes ? bytes : 1);
    if (!buffer)
        fail("no memory for a buffer of %zu bytes", bytes);
    memset(buffer, 0, bytes);
    return buffer;
}

void *new_message_buffer(const World *w, size_t bytes)
{
    void *buffer;
    if (!w->opt.alloc_mem)
        return new_buffer(bytes);
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &buffer);
    memset(buffer, 0, bytes);
    return buffer;
}

void free_message_buffer(const World *w, void *buffer)
{
    if (w->opt.alloc_mem)
        MPI_Free_mem(buffer);
    else
        free(buffer);
}

static void pin_to(const World *w, int cpu, const char *what)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (w->opt.pin && sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "%s: %s of rank %d stays unpinned: CPU %d: %s\n", program_invocation_short_name, what, w->rank, cpu,
                strerror(errno));
}

void pin_thread(const World *w, int number)
{
    int lap = number / w->opt.cpu_count;
    pin_to(w, w->opt.cpus[(number + lap) % w->opt.cpu_count], "a thread");
}

void pin(World *w)
{
    Options *o = &w->opt;
    if (!o->cpu_count) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        for (int i = 0; i < online && i < max_cpus; i++)
            o->cpus[o->cpu_count++] = i;
    }
    pin_to(w, o->cpus[w->rank % o->cpu_count], "the process");
}

bool parse_sizes(Options *o, const char *text)
{
    char *rest;
    o->lo_bytes = o->hi_bytes = strtoull(text, &rest, 0);
    if (*rest == ':')
        o->hi_bytes = strtoull(rest + 1, &rest, 0);
    return *rest == 0 && o->lo_bytes > 0 && o->hi_bytes >= o->lo_bytes && o->hi_bytes <= (size_t)1 << 30;
}

bool parse_cpus(Options *o, const char *text)
{
    o->cpu_count = 0;
    while (*text && o->cpu_count < max_cpus) {
        char *rest;
        o->cpus[o->cpu_count++] = (int)strtol(text, &rest, 10);
        if (rest == text || (*rest && *rest != ','))
            return false;
        text = *rest ? rest + 1 : rest;
    }
    return o->cpu_count > 0;
}

void introduce(const World *w)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (w->rank != 0)
        return;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n\"\\")] = 0;
    for (char *at = version; *at; at++)
        *at = *at < ' ' ? ' ' : *at;
    if (w->opt.json)
        printf("{\"test\":\"header\",\"library\":\"%s\",\"ranks\":%d}\n", version, w->size);
    else
        printf("# %s, %d ranks\n", version, w->size);
    fflush(stdout);
}

void reach_normal_state(const World *w)
{
    int64_t word = w->rank == 0 ? 5 : 0, sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&word, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&word, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (sum != 5 * (int64_t)w->size)
        fail("the opening collectives give %lld instead of %d", (long long)sum, 5 * w->size);
}

int64_t agree(const World *w, int64_t value)
{
    if (w->rank == 0) {
        for (int peer = 1; peer < w->size; peer++)
            MPI_Send(&value, 1, MPI_INT64_T, peer, 99, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&value, 1, MPI_INT64_T, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return value;
}

void meet(const World *w)
{
    int64_t token = 0;
    if (w->rank == 0) {
        for (int peer = 1; peer < w->size; peer++)
            MPI_Recv(&token, 1, MPI_INT64_T, peer, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&token, 1, MPI_INT64_T, 0, 98, MPI_COMM_WORLD);
    }
    agree(w, 0);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(const double *samples, int count)
{
    double *sorted = malloc(sizeof(double) * (size_t)count);
    if (!sorted || count < 1)
        fail("no samples to take a median of");
    memcpy(sorted, samples, sizeof(double) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof(double), by_value);
    double middle = count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
    free(sorted);
    return middle;
}

void report(const World *w, const char *test, size_t bytes, const char *unit, const double *samples, int count,
            const double *lines)
{
    if (w->rank != 0)
        return;
    double middle = median_of(samples, count);
    if (w->opt.json) {
        printf("{\"test\":\"%s\",\"bytes\":%zu,\"unit\":\"%s\",\"median\":%.9g,\"samples\":[", test, bytes, unit,
               middle);
        for (int i = 0; i < count; i++)
            printf("%s%.9g", i ? "," : "", samples[i]);
        for (int i = 0; lines && lines[0] > 0 && i <= count; i++)
            printf("%s%.3g", i ? "," : "],\"line_ns\":[", lines[i]);
        printf("]}\n");
    } else {
        double least = samples[0], most = samples[0];
        for (int i = 1; i < count; i++) {
            least = samples[i] < least ? samples[i] : least;
            most = samples[i] > most ? samples[i] : most;
        }
        printf("%-22s %9zu B %14.4f %-6s (%.4f .. %.4f, n = %d", test, bytes, middle, unit, least, most, count);
        if (lines && lines[0] > 0)
            printf(", line %.0f ns", median_of(lines, count + 1));
        printf(")\n");
    }
    fflush(stdout);
}

/* The name travels by message and is unlinked once both sides have it open, so a crash leaves at most one page. */
void *share_page(const World *w, size_t bytes)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    char name[64] = "";
    int fd = -1;
    if (w->rank == 0) {
        for (int i = 0; i < 2 && fd < 0; i++) {
            snprintf(name, sizeof name, "%s/weft-bench-XXXXXX", places[i]);
            fd = mkstemp(name);
        }
        if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
            fail("cannot create a shared file in /dev/shm or /tmp: %s", strerror(errno));
        for (int peer = 1; peer < w->size; peer++)
            MPI_Send(name, sizeof name, MPI_CHAR, peer, 97, MPI_COMM_WORLD);
    } else {
        MPI_Recv(name, sizeof name, MPI_CHAR, 0, 97, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = open(name, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            fail("cannot open %s: %s", name, strerror(errno));
    }
    meet(w);
    if (w->rank == 0)
        unlink(name);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        fail("cannot map the shared file: %s", strerror(errno));
    return page;
}
