/* weft-bench-part TEST [options]: partitioned communication measured by the four metrics of Temucin, Grant, Afsahi
 * (ICPP '22), and the patterns Sweep3D and Halo3D in three styles; the same binary for every standard-ABI library. */
#include "pattern.h"

#include <errno.h>
#include <getopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct Test {
    const char *name, *what;
    int (*run)(Part *p);
    int ranks; /* exactly; 0 for any number */
    bool pattern;
} tests[] = {
    {"overhead", "(1) a partitioned transfer against a plain message of the same size", run_metrics, 2, false},
    {"perceived_bandwidth", "(2) bytes by the time that the last partition takes", run_metrics, 2, false},
    {"availability", "(3) share of a plain message's time that is free after the join", run_metrics, 2, false},
    {"early_bird", "(4) share of the transfer that lies before the join", run_metrics, 2, false},
    {"metrics", "all four of them", run_metrics, 2, false},
    {"sweep3d", "wavefronts over a grid of ranks", run_sweep3d, 0, true},
    {"halo3d", "faces exchanged with up to six neighbours", run_halo3d, 0, true},
    {"jitter", "how late threads wake here, without any message", run_jitter, 0, false},
};
enum { test_count = sizeof tests / sizeof tests[0] };

enum { o_threads = 256, o_partitions, o_size, o_iterations, o_compute_time, o_percent, o_noise, o_seed, o_disable_hot, o_cache,
       o_flush, o_compute, o_poll, o_arrival, o_receiver, o_ready, o_trace, o_calibration, o_style, o_volume, o_grid, o_blocks,
       o_vars, o_memory, o_cpus, o_no_pin };

static const struct option options[] = {
    {"threads", 1, 0, o_threads}, {"partitions", 1, 0, o_partitions}, {"message-size", 1, 0, o_size},
    {"iterations", 1, 0, o_iterations}, {"warmup", 1, 0, 'x'}, {"compute-time", 1, 0, o_compute_time},
    {"percent-noise", 1, 0, o_percent}, {"noise-type", 1, 0, o_noise}, {"seed", 1, 0, o_seed},
    {"disable-hot-cache", 0, 0, o_disable_hot}, {"cache", 1, 0, o_cache}, {"flush-bytes", 1, 0, o_flush},
    {"compute", 1, 0, o_compute}, {"poll", 1, 0, o_poll}, {"arrival", 1, 0, o_arrival}, {"receiver", 1, 0, o_receiver},
    {"ready", 1, 0, o_ready}, {"trace", 0, 0, o_trace}, {"calibration", 1, 0, o_calibration}, {"style", 1, 0, o_style},
    {"volume", 1, 0, o_volume}, {"grid", 1, 0, o_grid}, {"blocks", 1, 0, o_blocks}, {"vars", 1, 0, o_vars},
    {"memory", 1, 0, o_memory}, {"cpus", 1, 0, o_cpus}, {"no-pin", 0, 0, o_no_pin}, {"json", 0, 0, 'j'}, {"help", 0, 0, 'h'}, {"version", 0, 0, 'v'}, {0}};

static void usage(void)
{
    fputs("usage: mpiexec -n 2 weft-bench-part TEST [options]\n\ntests:\n", stdout);
    for (int i = 0; i < test_count; i++)
        printf("  %-20s %s\n", tests[i].name, tests[i].what);
    fputs("\nwork:\n"
          "  --threads N             threads of each rank (1)\n"
          "  --partitions N          partitions of a message (as many as threads)\n"
          "  --message-size LO:HI    bytes, doubling, in halo3d fourfold (8:1048576; patterns 65536)\n"
          "  --iterations N          timed ones (100)\n"
          "  -x, --warmup N          untimed ones (10)\n"
          "  --compute-time MS       compute time of each thread (100; patterns 10)\n"
          "  --percent-noise N       noise in percent of it (0)\n"
          "  --noise-type T          single, uniform or gaussian (uniform)\n"
          "  --seed N                of the noise and of the data (1)\n"
          "  --cache C               hot; cold: L1 and L2 hold another buffer; dram: the message is in no cache (hot)\n"
          "  --disable-hot-cache     --cache=cold --warmup=0\n"
          "  --flush-bytes N         what replaces the contents of the caches (8388608)\n"
          "\nmeasuring:\n"
          "  --compute HOW           sleep: every thread is a virtual core; spin: needs a CPU for each (sleep)\n"
          "  --poll HOW              yield or spin between two looks (spin where a rank has a CPU for each thread)\n"
          "  --arrival HOW           clock: the receiver's, on one host; notify: a message back, a round trip longer (clock)\n"
          "  --receiver HOW          poll or wait, for both kinds of transfers (poll)\n"
          "  --ready WHEN            a partition's time begins at the entry or the return of MPI_Pready (entry)\n"
          "  --memory M              malloc or alloc (MPI_Alloc_mem): the buffers of the metrics (malloc)\n"
          "  --calibration N         regions without messages that tell the jitter (10)\n"
          "  --trace                 print when every partition was ready and arrived (with --json)\n"
          "\npatterns:\n"
          "  --style S               single, multiple or partitioned (partitioned)\n"
          "  --volume V              equal bytes in every style, or those of the public artifact (equal)\n"
          "  --grid XxY[xZ]          processes (as square as can be)\n"
          "  --blocks N              of a corner of the sweep (16)\n"
          "  --vars N                doubles in each cell of the halo (2)\n"
          "\n  --cpus A,B,..           CPUs to run on (all online ones);  --no-pin: leave the ranks where the launcher put them\n"
          "  -j, --json              one JSON object per line, with every sample\n",
          stdout);
}

/* The index of a word in "a b c", or -1. */
static int word_in(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; *words; i++) {
        size_t next = strcspn(words, " ");
        if (next == length && strncasecmp(words, word, length) == 0)
            return i;
        words += next + (words[next] == ' ');
    }
    return -1;
}

static bool to_int(int *out, const char *text, long least, long most)
{
    char *rest;
    errno = 0;
    long value = strtol(text, &rest, 10);
    *out = (int)value;
    return rest != text && !*rest && !errno && value >= least && value <= most;
}

static bool to_double(double *out, const char *text, double most)
{
    char *rest;
    *out = strtod(text, &rest);
    return rest != text && !*rest && *out >= 0 && *out <= most;
}

static bool to_choice(int *out, const char *words, const char *text)
{
    *out = word_in(words, text);
    return *out >= 0;
}

static bool to_flag(bool *out, const char *words, const char *text)
{
    int choice;
    bool good = to_choice(&choice, words, text);
    *out = choice == 1;
    return good;
}

static bool to_grid(int grid[3], const char *text)
{
    char end;
    grid[2] = 1;
    int got = sscanf(text, "%dx%dx%d%c", &grid[0], &grid[1], &grid[2], &end);
    return (got == 2 || got == 3) && grid[0] > 0 && grid[1] > 0 && grid[2] > 0;
}

static bool to_u64(uint64_t *out, const char *text)
{
    char *rest;
    *out = strtoull(text, &rest, 0);
    return rest != text && !*rest;
}

/* How the measurement is done; the rest is take_work()'s. */
static bool take_method(Part *p, int option, const char *text)
{
    Settings *s = &p->s;
    int choice = 0;
    bool good = true;
    switch (option) {
    case o_compute: return to_flag(&s->spin, "sleep spin", text);
    case o_poll: good = to_flag(&s->busy_poll, "yield spin", text); s->poll_given = true; return good;
    case o_arrival: good = to_choice(&choice, "clock notify", text); s->arrival = (Arrival)choice; return good;
    case o_receiver: return to_flag(&s->receiver_waits, "poll wait", text);
    case o_memory: return to_flag(&s->shared, "malloc alloc", text);
    case o_ready: return to_flag(&s->from_return, "entry return", text);
    case o_trace: return s->trace = true;
    case o_calibration: return to_int(&s->calibration, text, 1, 100000);
    case o_style: good = to_choice(&choice, "single multiple partitioned", text); s->style = (Style)choice; return good;
    case o_volume: return to_flag(&s->artifact_volume, "equal artifact", text);
    case o_grid: return to_grid(s->grid, text);
    case o_blocks: return to_int(&s->blocks, text, 2, 900);
    case o_vars: return to_int(&s->vars, text, 1, 1000);
    case o_cpus: return parse_cpus(&p->w.opt, text);
    case o_no_pin: p->w.opt.pin = false; return true;
    case 'j': return p->w.opt.json = true;
    default: return false;
    }
}

static bool take_work(Part *p, int option, const char *text)
{
    Settings *s = &p->s;
    int choice = 0;
    bool good = true;
    uint64_t bytes = 0;
    switch (option) {
    case o_threads: return to_int(&s->threads, text, 1, 512);
    case o_partitions: return to_int(&s->partitions, text, 1, 1 << 20);
    case o_size: return parse_sizes(&p->w.opt, text);
    case o_iterations: return to_int(&s->iterations, text, 1, max_iterations);
    case 'x': return to_int(&s->warmup, text, 0, 1000000);
    case o_compute_time: return to_double(&s->compute_ms, text, 1e5);
    case o_percent: return to_double(&s->percent_noise, text, 1000);
    case o_noise: good = to_choice(&choice, "single uniform gaussian", text); s->model = (NoiseModel)choice; return good;
    case o_seed: return to_u64(&s->seed, text);
    case o_disable_hot: s->cache = cache_cold; s->warmup = 0; return true;
    case o_cache: good = to_choice(&choice, "hot cold dram", text); s->cache = (Cache)choice; return good;
    case o_flush: good = to_u64(&bytes, text) && bytes > 0; s->flush_bytes = bytes; return good;
    default: return take_method(p, option, text);
    }
}

static const struct Test *test_of(const char *name)
{
    for (int i = 0; i < test_count; i++)
        if (name && strcmp(tests[i].name, name) == 0)
            return &tests[i];
    return NULL;
}

static bool parse(Part *p, int argc, char **argv)
{
    Settings *s = &p->s;
    int option;
    *s = (Settings){.threads = 1, .iterations = 100, .warmup = 10, .calibration = 10, .compute_ms = -1, .model = noise_uniform,
                    .seed = 1, .flush_bytes = (size_t)8 << 20, .style = style_partitioned, .blocks = 16, .vars = 2};
    p->w.opt.pin = true;
    while ((option = getopt_long(argc, argv, "x:jhv", options, NULL)) != -1) {
        if (option == '?' || !take_work(p, option, optarg)) {
            if (option != '?')
                fprintf(stderr, "weft-bench-part: bad value in %s\n", argv[optind - 1]);
            return false;
        }
    }
    s->test = optind + 1 == argc ? argv[optind] : NULL;
    const struct Test *test = test_of(s->test);
    if (!test) {
        fprintf(stderr, "weft-bench-part: %s\n", s->test ? "there is no such test" : "give the name of one test");
        return false;
    }
    if (s->compute_ms < 0)
        s->compute_ms = test->pattern ? default_pattern_ms : 100;
    if (!p->w.opt.lo_bytes) {
        p->w.opt.lo_bytes = test->pattern ? 65536 : 8;
        p->w.opt.hi_bytes = test->pattern ? 65536 : 1 << 20;
    }
    s->partitions = s->partitions ? s->partitions : s->threads;
    return true;
}

/* What cannot be measured is refused before anything is. */
static void check_settings(const Part *p, const struct Test *test, int provided)
{
    const Settings *s = &p->s;
    size_t largest = p->w.opt.lo_bytes;
    char here[64] = "", there[64] = "";
    while (largest * 2 <= p->w.opt.hi_bytes)
        largest *= 2;
    if (test->ranks && p->w.size != test->ranks)
        fail("%s needs exactly %d ranks, not %d", test->name, test->ranks, p->w.size);
    if (provided < MPI_THREAD_MULTIPLE && s->threads > 1)
        fail("%d threads need MPI_THREAD_MULTIPLE, and this library gives level %d", s->threads, provided);
    if (!test->ranks)
        return;
    if (largest % (size_t)s->partitions)
        fail("no size from %zu to %zu B can be divided into %d partitions", p->w.opt.lo_bytes, p->w.opt.hi_bytes, s->partitions);
    if (s->partitions < s->threads)
        fail("%d partitions leave some of %d threads without one", s->partitions, s->threads);
    if (s->receiver_waits && s->arrival == arrival_notify && strcmp(test->name, "perceived_bandwidth") != 0)
        fail("--receiver=wait sees no single partition arrive, so it cannot notify: take --arrival=clock");
    if (s->arrival != arrival_clock)
        return;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!file || !fgets(here, sizeof here, file))
        fail("cannot tell whether both ranks share a clock: take --arrival=notify");
    fclose(file);
    memcpy(there, here, sizeof here);
    MPI_Bcast(there, sizeof there, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (strcmp(here, there) != 0)
        fail("the ranks are on two hosts, whose clocks differ: take --arrival=notify");
}

static void complete_settings(Part *p, const struct Test *test)
{
    Settings *s = &p->s;
    Options *o = &p->w.opt;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < online && o->cpu_count < max_cpus && o->cpu_count == i; i++)
        o->cpus[o->cpu_count++] = i;
    if (!s->poll_given)
        s->busy_poll = o->cpu_count / p->w.size >= s->threads;
    if (strcmp(test->name, "perceived_bandwidth") == 0 && s->arrival == arrival_notify)
        s->arrival = arrival_ack;
    if (test->pattern && !s->grid[0]) {
        int dims[3] = {0, 0, test->run == run_sweep3d};
        MPI_Dims_create(p->w.size, 3, dims);
        memcpy(s->grid, dims, sizeof dims);
    }
    p->noise = (Noise){s->model, s->compute_ms * 1e-3, s->percent_noise / 100, s->seed};
}

/* OpenMP's idle threads must not take the CPU from those that work: it reads this variable before main(). */
static void sleep_between_regions(const Part *p, char **argv)
{
    if (p->s.spin || getenv("OMP_WAIT_POLICY"))
        return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
    perror("weft-bench-part: cannot start again with OMP_WAIT_POLICY=passive");
}

int main(int argc, char **argv)
{
    static Part part;
    int provided, status;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            usage();
            return 0;
        }
        if (strcmp(argv[i], "-v") == 0 || strcmp(argv[i], "--version") == 0) {
            puts("weft-bench-part 1");
            return 0;
        }
    }
    if (!parse(&part, argc, argv)) {
        fputs("weft-bench-part: -h lists tests and options\n", stderr);
        return 2;
    }
    sleep_between_regions(&part, argv);
    const struct Test *test = test_of(part.s.test);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &part.w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &part.w.size);
    complete_settings(&part, test);
    check_settings(&part, test, provided);
    place_threads(&part);
    reach_normal_state(&part.w);
    part.jitter = calibrate(&part);
    print_settings(&part);
    status = test->run(&part);
    report_clamps(&part);
    MPI_Finalize();
    return status;
}
