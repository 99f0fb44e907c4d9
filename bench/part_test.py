#!/usr/bin/env python3
"""The partitioned suite and `weft profile` on Weft: what they print follows from what they traced, patterns notice wrong data,
counts are exact, and what cannot be measured is refused.

part_test.py --root BUILD
"""
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from weft_bench import libraries, part_stats, project, runner  # noqa: E402

ROOT = None
SHORT = ["--iterations", 4, "--warmup", 1, "--calibration", 2]
METRICS = ("overhead", "perceived_bandwidth", "availability", "early_bird", "metrics")


def launch(ranks, *args):
    """All records of one launch."""
    return runner.bench(libraries.weft(ROOT), ranks, [*args, *SHORT], 120, program="weft-bench-part")


def results(lines):
    return [line for line in lines if "samples" in line]


class Statistics(unittest.TestCase):
    def test_pruning_drops_whole_iterations_by_their_times(self):
        samples = {"time_us": [10, 11, 9, 10, 500], "rate": [1, 1, 1, 1, 0.02], "other_us": [1, 900, 1, 1, 1]}
        self.assertEqual(list(part_stats.kept_iterations(samples, ("time_us",), 10)), [0, 1, 2, 3])
        self.assertEqual(list(part_stats.kept_iterations(samples, ("time_us",), None)), [0, 1, 2, 3, 4])
        self.assertEqual(list(part_stats.kept_iterations(samples, ("absent",), 10)), [0, 1, 2, 3, 4])

    def test_few_launches_are_pooled_and_six_are_units(self):
        few = part_stats.summarize([[1, 2, 3], [4, None, 5]])
        self.assertEqual((few.median, few.mean, few.n, few.counted, few.undefined, few.interval), (3, 3, 5, "iterations", 1, None))
        many = part_stats.summarize([[i, i, 100] for i in range(6)])
        self.assertEqual((many.median, many.interval, many.n, many.counted), (2.5, (0, 5), 6, "launches"))
        self.assertIsNone(part_stats.summarize([[None], []]))


class Projection(unittest.TestCase):
    def test_published_shares(self):
        for share, speedup in ((0.01, 1.009), (0.06, 1.059), (0.204, 1.235), (0.545, 2.036)):
            self.assertAlmostEqual(project.speedup(share, 15.1), speedup, places=3)

    def test_bounds(self):
        self.assertEqual(project.speedup(0, 15.1), 1)
        self.assertAlmostEqual(project.speedup(1, 15.1), 15.1)
        for share, gain in ((-0.1, 2), (1.1, 2), (0.5, 0)):
            with self.assertRaises(ValueError):
                project.speedup(share, gain)


def union(parts):
    """Disjoint intervals that cover the same, without the program's code."""
    edges = sorted({edge for part in parts for edge in part})
    return [(a, b) for a, b in zip(edges, edges[1:]) if any(p[0] <= a and b <= p[1] for p in parts)]


def within(parts, low, high):
    return sum(max(0, min(b, high) - max(a, low)) for a, b in parts)


class Metrics(unittest.TestCase):
    def close(self, value, wanted, what):
        self.assertAlmostEqual(value, wanted, delta=1e-5 * max(1, abs(wanted)), msg=what)

    def check(self, record, traces):
        for trace in traces:
            at, parts = trace["iteration"], list(zip(trace["ready_us"], trace["arrived_us"]))
            value = {name: samples[at] for name, samples in record["samples"].items()}
            join, plain, covered = trace["join_us"], trace["plain_us"], union(parts)
            length, big = within(covered, -1e12, 1e12), 1e12
            last = max(p[1] for p in parts) - max(p[0] for p in parts)
            span = max(p[1] for p in parts) - min(p[0] for p in parts)
            self.close(value["overhead"], length / plain, "(1), union")
            self.close(value["overhead_span"], span / plain, "(1), span")
            self.close(value["bandwidth_MBps"], record["bytes"] / last, "(2)")
            self.close(value["availability"], 1 - within(covered, join, big) / plain, "(3)")
            self.close(value["early_bird"], within(covered, -big, join) / length, "(4)")
            self.close(value["early_bird_partitions"], sum(p[1] <= join for p in parts) / len(parts), "arrived before the join")

    def test_what_is_printed_follows_from_the_trace(self):
        for ways in (["--arrival", "clock"], ["--arrival", "notify"], ["--receiver", "wait"], ["--partitions", 12]):
            lines = launch(2, "metrics", "--threads", 4, "--compute-time", 3, "--percent-noise", 50, "--trace", "--message-size",
                           "3072:12288", *ways)
            found = results(lines)
            self.assertEqual([line["bytes"] for line in found], [3072, 6144, 12288])
            for record in found:
                traces = [line for line in lines if line["test"] == "trace" and line["bytes"] == record["bytes"]]
                self.assertEqual(len(traces), 4)
                self.assertEqual({len(trace["ready_us"]) for trace in traces}, {12 if "--partitions" in ways else 4})
                self.check(record, traces)

    def test_no_partition_is_ready_before_its_compute_time(self):
        lines = launch(2, "early_bird", "--threads", 3, "--compute-time", 4, "--percent-noise", 100, "--noise-type", "single", "--trace",
                       "--message-size", 3 << 10)
        for trace in (line for line in lines if line["test"] == "trace"):
            self.assertGreaterEqual(trace["ready_us"][0], 8000)
            self.assertGreaterEqual(min(trace["ready_us"]), 4000)
            self.assertGreaterEqual(trace["join_us"], 8000)
            self.assertTrue(all(a >= r for r, a in zip(trace["ready_us"], trace["arrived_us"])))

    def test_every_test_every_cache_every_noise(self):
        for test in METRICS:
            for more in ([], ["--arrival", "notify"]):
                record = results(launch(2, test, "--threads", 2, "--compute-time", 1, "--message-size", 4096, *more))[0]
                self.assertTrue(all(v > 0 for v in record["samples"]["overhead"]), record)
        for cache in ("cold", "dram"):
            self.assertTrue(results(launch(2, "overhead", "--threads", 2, "--compute-time", 1, "--cache", cache, "--flush-bytes", 100000)))
        for noise in ("single", "uniform", "Gaussian"):
            self.assertTrue(results(launch(2, "availability", "--noise-type", noise, "--compute-time", 1, "--percent-noise", 10)))

    def test_settings_and_jitter_are_told(self):
        lines = launch(2, "metrics", "--threads", 32, "--compute-time", 5, "--seed", 77, "--compute", "sleep", "--message-size", 32768)
        settings = lines[0]
        self.assertEqual((settings["test"], settings["seed"], settings["compute"], settings["poll"]), ("settings", 77, "sleep", "yield"))
        self.assertGreater(settings["jitter"]["late_max_us"], 0)
        self.assertGreaterEqual(settings["jitter"]["region_ms"], 5)
        self.assertEqual(settings["partitions"], 32)

    def test_spinning_threads(self):
        self.assertTrue(results(launch(2, "overhead", "--compute", "spin", "--compute-time", 1, "--threads", 2)))

    def test_negative_draws_are_counted(self):
        lines = launch(2, "early_bird", "--threads", 8, "--noise-type", "gaussian", "--percent-noise", 500, "--compute-time", 1,
                       "--message-size", 1024)
        self.assertGreater(next(line["draws"] for line in lines if line["test"] == "clamped"), 0)

    def test_what_cannot_be_measured_is_refused(self):
        for ranks, args, text in ((3, ["overhead"], "needs exactly 2 ranks"),
                                  (2, ["overhead", "--threads", 3, "--message-size", "8:64"], "can be divided into 3 partitions"),
                                  (2, ["overhead", "--threads", 4, "--partitions", 2], "leave some of 4 threads without one"),
                                  (2, ["early_bird", "--receiver", "wait", "--arrival", "notify"], "cannot notify"),
                                  (2, ["nonsense"], "no such test"), (2, ["overhead", "--noise-type", "pink"], "bad value in pink"),
                                  (2, ["overhead", "--no-such-option"], "unrecognized option"),
                                  (2, ["halo3d", "--threads", 6], "no cube"), (4, ["sweep3d", "--grid", "3x2"], "does not hold 4 ranks"),
                                  (2, ["sweep3d", "--message-size", 1000], "cannot be cut into 16 blocks")):
            with self.assertRaisesRegex(runner.Broken, text):
                launch(ranks, *args)


# A tool that changes the first byte of what leaves: by a message, or as the first partition.
SPOILER = """
#include <mpi.h>
static char *buffer[64]; static MPI_Request request[64]; static int made;
int MPI_Psend_init(const void *b, int n, int c, MPI_Datatype t, int d, int tag, MPI_Comm comm, MPI_Info i, MPI_Request *r)
{ int e = PMPI_Psend_init(b, n, c, t, d, tag, comm, i, r); buffer[made] = (char *)b; request[made++] = *r; return e; }
int MPI_Pready(int p, MPI_Request r)
{ for (int i = 0; i < made && p == 0; i++) if (request[i] == r) buffer[i][0] ^= 1; return PMPI_Pready(p, r); }
int MPI_Send(const void *b, int c, MPI_Datatype t, int d, int tag, MPI_Comm comm)
{ if (c >= 1000) *(char *)b ^= 1; return PMPI_Send(b, c, t, d, tag, comm); }
int MPI_Isend(const void *b, int c, MPI_Datatype t, int d, int tag, MPI_Comm comm, MPI_Request *r)
{ *(char *)b ^= 1; return PMPI_Isend(b, c, t, d, tag, comm, r); }
"""


def compiled(folder, name, source, *flags):
    path = pathlib.Path(folder) / name
    (pathlib.Path(folder) / f"{name}.c").write_text(source)
    subprocess.run([str(ROOT / "bin" / "mpicc"), *flags, f"{path}.c", "-o", str(path)], check=True, capture_output=True, timeout=120)
    return path


class Patterns(unittest.TestCase):
    def pattern(self, name, ranks, style, *args):
        return results(launch(ranks, name, "--style", style, "--compute-time", 1, "--percent-noise", 10, *args))

    def test_equal_volumes(self):
        for name, ranks, threads in (("sweep3d", 4, 4), ("sweep3d", 6, 16), ("halo3d", 8, 8), ("halo3d", 4, 64)):
            moved = set()
            for style in ("single", "multiple", "partitioned"):
                record = self.pattern(name, ranks, style, "--threads", threads, "--message-size", 65536)[0]
                moved.add((record["bytes_with_neighbour"], record["bytes_of_busiest_rank"], record["bytes_of_all"]))
                for time, ideal, beyond in zip(*(record["samples"][n] for n in ("time_us", "ideal_us", "communication_us"))):
                    self.assertAlmostEqual(beyond, time - ideal, delta=1e-3)
                    self.assertGreaterEqual(time, 1000)
            self.assertEqual(len(moved), 1, moved)

    def test_the_volumes_of_the_artifact(self):
        m = 32768
        for style, factor in (("single", 64), ("multiple", 128), ("partitioned", 8)):
            record = self.pattern("sweep3d", 4, style, "--volume", "artifact", "--threads", 4, "--message-size", m)[0]
            self.assertEqual((record["bytes_with_neighbour"], record["nominal_bytes_with_neighbour"]), (factor * m, 2 * m))
            self.assertEqual(record["bytes_of_all"], 4 * factor * m)  # four pairs of neighbours
        faces = [self.pattern("halo3d", 2, style, "--volume", "artifact", "--threads", 8, "--message-size", m * 2)[0]
                 ["bytes_with_neighbour"] for style in ("single", "multiple", "partitioned")]
        self.assertEqual(faces, [4 * m, 2 * m, 4 * m])  # there the pieces are divided by 8 threads, of which 4 send

    def test_the_sweep_takes_as_long_as_its_blocks(self):
        record = self.pattern("sweep3d", 2, "single", "--message-size", 4096, "--blocks", 4)[0]
        self.assertTrue(all(time >= 8 * 4 * 1000 for time in record["samples"]["time_us"]), record)
        self.assertTrue(all(37000 <= ideal <= 37000 * 1.1 for ideal in record["samples"]["ideal_us"]), record)

    def test_wrong_data_are_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = compiled(folder, "spoiler", SPOILER, "-shared", "-fPIC")
            library = libraries.weft(ROOT)
            cases = [("metrics", 2, [])] + [(name, ranks, ["--style", style]) for style in ("single", "multiple", "partitioned")
                                            for name, ranks in (("sweep3d", 2), ("halo3d", 2))]
            for name, ranks, args in cases:
                command = library.command(ranks, "weft-bench-part", [name, *args, "--threads", 8, "--compute-time", 1, *SHORT])
                with self.assertRaisesRegex(runner.Broken, "does not hold what was sent"):
                    runner.execute(command, library.environment() | {"LD_PRELOAD": str(tool)})


class Harness(unittest.TestCase):
    def weft(self, *args, status=0):
        done = subprocess.run([str(ROOT / "bin" / "weft"), *map(str, args)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_tables_and_files(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = self.weft("bench", "part", "metrics", "--libraries", "weft", "--threads", "1,4", "--reps", 2, "--prune", 5, "--compute-time",
                              1, "--message-size", "1024:2048", *SHORT, "--csv", f"{folder}/all.csv", "--json", f"{folder}/all.json")
            for heading in ("overhead, union of intervals (x)", "perceived bandwidth (MB/s)", "application availability, paired join",
                            "early-bird communication, union, paired join", "overhead, quotient of means"):
                for threads in (1, 4):
                    self.assertRegex(shown, re.escape(heading) + rf".*, {threads} threads")
            self.assertEqual(len(re.findall(r"\njitter, us late in the median \(at worst\): Weft [0-9.]+ \([0-9.]+\)", shown)), 2)
            self.assertRegex(shown, r"[0-9]+ of 32 iterations pruned")
            with open(f"{folder}/all.csv", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            with open(f"{folder}/all.json", encoding="utf-8") as file:
                data = json.load(file)
            self.assertEqual(len([row for row in rows if row["value"] == "overhead"]), 2 * 2 * 2 * 4)
            self.assertEqual(len(data["records"]), 8)
            self.assertEqual({s["seed"] for s in data["settings"]}, {1, 2})
            self.assertEqual(len(data["panels"]), 5)
            self.assertTrue(all({"median", "mean", "interval", "n"} <= set(s) for s in data["summary"]))

    def test_bars(self):
        shown = self.weft("bench", "bars", "--group", "part", "--part", "part one,part marked", "--libraries", "weft", "--reps", 1)
        self.assertEqual(len(re.findall(r"\noverhead of one partition, [0-9]+ .iB +[0-9.]+ x +1 +[0-9.]+ x", shown)), 7)
        self.assertRegex(shown, r"overhead of 16 partitions of 1 B +[0-9.]+ x +1 +[0-9.]+ x .* <= 4 x  not decided, n = 1")

    def test_styles_are_compared(self):
        shown = self.weft("bench", "part", "halo3d", "-n", 2, "--libraries", "weft", "--threads", 8, "--compute-time", 1, *SHORT)
        self.assertRegex(shown, r"(?s)communication time of Weft's partitioned style.*\n64 KiB +8 threads, partitioned +Weft, 8 threads, "
                                r"(single|multiple) +[0-9.]+")
        self.assertEqual(len(re.findall("true bytes of an iteration", shown)), 3)


COUNTED = """
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank; double x[100] = {0}; MPI_Request r;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; i++) {
        if (rank == 0) MPI_Send(x, i < 5 ? 100 : 50, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(x, 100, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Isend(x, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, x, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scatter(x, 2, rank ? MPI_DATATYPE_NULL : MPI_DOUBLE, x + 50, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (argc > 1 && rank == 0) usleep(300000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return argc > 2 ? 7 : 0;
}
"""


class Profile(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.program = compiled(self.folder, "counted", COUNTED)

    def profile(self, *args):
        return subprocess.run([str(ROOT / "bin" / "weft"), "profile", *map(str, args)], capture_output=True, text=True, timeout=120)

    def job(self, *args):
        report = self.folder / "report"
        report.unlink(missing_ok=True)
        done = self.profile("--json", report, ROOT / "bin" / "mpiexec", "-n", 2, self.program, *args)
        return done, json.loads(report.read_text())

    def test_counts_and_sizes_are_exact(self):
        done, job = self.job()
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = {call["name"]: (call["category"], call["calls"], call["mean_bytes"]) for call in job["calls"]}
        self.assertEqual(calls, {"MPI_Send": ("point-to-point", 10, 600), "MPI_Recv": ("point-to-point", 10, None),
                                 "MPI_Isend": ("point-to-point", 2, None), "MPI_Wait": ("completion", 2, None),
                                 "MPI_Allreduce": ("collective", 2, None), "MPI_Scatter": ("collective", 2, 16),
                                 "MPI_Barrier": ("collective", 2, None)})
        self.assertEqual((job["ranks"], job["threads"]), (2, 2))

    def test_waiting_counts_as_communication(self):
        done, job = self.job("slow")
        self.assertIn("communication: ", done.stdout)
        self.assertGreater(job["most_share"], 0.5)   # rank 1 waits for most of its time
        self.assertLess(job["least_share"], 0.5)     # rank 0 sleeps for most of its time
        self.assertAlmostEqual(job["share"], (job["most_share"] + job["least_share"]) / 2, places=6)

    def test_the_status_is_the_commands(self):
        self.assertEqual(self.job("slow", "fails")[0].returncode, 7)

    def test_two_jobs_have_two_reports(self):
        mpiexec = ROOT / "bin" / "mpiexec"
        done = self.profile("--gain", 15.1, "sh", "-c", f"{mpiexec} -n 2 {self.program}; {mpiexec} -n 3 {self.program}")
        self.assertEqual(re.findall(r"\n([0-9]) ranks, ", done.stdout), ["2", "3"])
        self.assertIn("with communication 15.1 times as fast", done.stdout)
        self.assertIn("Read it with care", done.stdout)

    def test_the_library_alone(self):
        library = next(ROOT.glob("**/libweft-profile.so"))
        done = subprocess.run([str(ROOT / "bin" / "mpiexec"), "-n", "2", "env", f"LD_PRELOAD={library}", str(self.program)],
                              capture_output=True, text=True, timeout=120)
        self.assertRegex(done.stderr, r"weft profile: 2 ranks, [0-9.]+ s; communication takes [0-9.]+ %")
        self.assertRegex(done.stderr, r"MPI_Send +10 calls")

    def test_what_gives_no_report_says_so(self):
        done = self.profile("true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no report", done.stderr)
        self.assertIn("no such file", self.profile("./no-such-program").stderr.lower())
        self.assertEqual(self.profile("--project", "20").returncode, 2)
        self.assertIn("1.235 x", self.profile("--project", "20.4", "--gain", 15.1).stdout)


if __name__ == "__main__":
    position = sys.argv.index("--root")
    ROOT = pathlib.Path(sys.argv[position + 1]).resolve()
    del sys.argv[position:position + 2]
    unittest.main()
