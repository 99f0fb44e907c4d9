#!/usr/bin/env python3
"""Every test of weft-bench runs on Weft, checks what it receives, and reports what it was asked for; so does the demo.

programs_test.py --root BUILD
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from weft_bench import coll, coll_tuning, libraries, runner, tuning  # noqa: E402

ROOT = None
SHORT = ["-t", 1, "-w", 1, "-r", 2]


class Programs(unittest.TestCase):
    def bench(self, ranks, test, *args):
        return runner.bench(libraries.weft(ROOT), ranks, [test, *SHORT, *args], timeout_s=120)

    def positive(self, lines, count):
        for line in lines:
            self.assertEqual(len(line["samples"]), count)
            self.assertTrue(all(v > 0 for v in line["samples"]), line)

    def test_tuning_knows_what_is_shipped(self):
        told = json.loads(subprocess.run([str(ROOT / "bin/weft"), "info", "--cvars", "--json"], check=True, capture_output=True, text=True).stdout)
        self.assertEqual({name: int(told[name]["value"]) for name in tuning.SHIPPED}, tuning.SHIPPED)

    def test_algorithms_of_collectives_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            table, kept = pathlib.Path(folder) / "coll.conf", pathlib.Path(folder) / "kept"
            done = subprocess.run([str(ROOT / "bin/weft"), "tune", "--coll", "--short", "--ops", "barrier,bcast", "--ranks", "2,3", "--reps", "1",
                                   "--window", "1", "--out", str(table), "--results", str(kept), "--no-picture"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([line for line in table.read_text().splitlines() if not line.startswith("#")], [], "one launch decides nothing")
            numbers = json.loads((kept / "coll.json").read_text())
            for n in ("2", "3"):
                self.assertEqual(set(numbers["data"][n]["blocking"]["bcast"]["8"]), {"weft", *coll_tuning.ALGORITHMS["bcast"]})
            self.assertTrue(numbers["machine"]["cpu"] and numbers["versions"]["weft"])

    def test_no_tuning_of_what_is_not_shipped(self):
        done = subprocess.run([str(ROOT / "bin/weft"), "tune", "--coll"], capture_output=True, text=True, env=os.environ | {"WEFT_COLL": "stages"})
        self.assertEqual((done.returncode, "WEFT_COLL must not be set" in done.stderr), (1, True))

    def test_weft_reads_every_row_that_can_be_written(self):
        rows = [coll_tuning.Row(o, n, tuple(sizes), a, 0.5) for o, algorithms in coll_tuning.ALGORITHMS.items() for n in (2, 8)
                for a in algorithms for sizes in ([8], [8192, 32768], [1 << 20])]
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as table:
            table.write(coll_tuning.file_text(rows, [2, 8], coll.sizes_of, {"cpus": 2}, "a machine", "a version", 7))
            table.flush()
            runner.bench(libraries.weft(ROOT), 2, ["coll", "--ops", "bcast", "-m", "8:64"], env={"WEFT_COLL_TABLE": table.name})

    def test_hybrid_mpi_delivers_and_is_killed(self):
        lines = runner.plain(ROOT / "bench", ["latency", "-m", "4096:65536", "-r", 1, "--rewrite"], program="weft-bench-hmpi")
        self.positive(lines, 1)
        self.positive(runner.plain(ROOT / "bench", ["rate", "-n", 8, "-r", 1], program="weft-bench-hmpi"), 1)
        killed = runner.plain(ROOT / "bench", ["kill", "-n", 8, "-r", 3], program="weft-bench-hmpi")
        self.assertEqual([killed[1]["test"], killed[1]["samples"]], ["trials survived by rings", [1]])

    def test_latency_and_bandwidth_cover_every_size(self):
        for test in ("latency", "bandwidth"):
            lines = self.bench(2, test, "-m", "1:1048576")
            self.assertEqual([line["bytes"] for line in lines], [1 << i for i in range(21)])
            self.positive(lines, 2)

    def test_few_buffers_and_no_rewriting(self):
        self.positive(self.bench(2, "bandwidth", "-m", "4096:8192", "--buffers", 3, "--window", 10, "--no-rewrite"), 2)

    def test_rate(self):
        self.positive(self.bench(2, "rate"), 2)

    def test_limits_alternate(self):
        lines = self.bench(2, "limits", "--pairs", 4)
        self.assertEqual([line["test"] for line in lines], ["two lines", "one line", "mpi", "mpi / two lines"])
        self.positive(lines, 4)
        pairs = zip(lines[0]["samples"], lines[2]["samples"], lines[3]["samples"])
        for raw, mpi, ratio in pairs:
            self.assertAlmostEqual(ratio, mpi / raw, delta=1e-6 * ratio)

    def test_ring_of_more_ranks_than_cores(self):
        self.positive(self.bench(5, "ring", "--hops", 500), 2)

    def test_before_and_after_the_first_collective(self):
        lines = self.bench(2, "after")
        self.assertEqual([line["test"] for line in lines], ["before", "after"])
        self.positive(lines, 2)

    def test_a_window_of_everything_beside_others(self):
        names = ["pingpong", "flood", "allreduce", "halo", "sendrecv"]
        for ranks in (2, 4):
            lines = self.bench(ranks, "busy", "--messages", 1000)
            self.assertEqual([line["test"] for line in lines], names)
            self.positive(lines, 2)
        for name in names:
            self.positive(self.bench(2, name, "-m", 16), 2)
        self.positive(self.bench(3, "halo", "-m", 1000), 2)
        for name in ("pingpong", "stream", "allreduce"):
            lines = self.bench(4, name, "-m", "8:64")
            self.assertEqual([line["bytes"] for line in lines], [8, 16, 32, 64])
            self.positive(lines, 2)
        with self.assertRaisesRegex(runner.Broken, "whole 8-byte words"):
            self.bench(2, "pingpong", "-m", 12)
        with self.assertRaisesRegex(runner.Broken, "even number of ranks"):
            self.bench(3, "flood")

    def test_every_depth(self):
        lines = self.bench(2, "depth")
        self.assertEqual([line["test"] for line in lines],
                         [f"{depth} {kind}" for depth in (1, 100, 10000, 100000) for kind in ("posted", "unexpected")])
        self.positive(lines, 2)

    def test_footprint_reports_every_rank(self):
        self.positive(self.bench(3, "footprint"), 3)

    def test_memory(self):
        self.positive(self.bench(3, "windows", "-m", 40000), 3)
        lines = self.bench(3, "alltoall")
        self.assertEqual([line["test"] for line in lines], ["all memory after alltoall", "all memory after each to each"])
        self.positive(lines, 1)

    def test_every_collective_in_every_form(self):
        for ranks in (2, 3, 8):
            for form in coll.FORMS:
                lines = self.bench(ranks, "coll", "--form", form, "-m", "8:4096", "--step", 64)
                suffix = "" if form == "blocking" else " " + form
                names = [(op + suffix, size) for op in coll.OPERATIONS for size in coll.sizes_of(op, (8, 4096), 64)]
                if form == "blocking":
                    names.insert(0, (coll.EMPTY, 0))
                self.assertEqual([(line["test"], line["bytes"]) for line in lines], names)
                self.positive(lines, 2)

    def test_collectives_one_after_the_other(self):
        lines = self.bench(3, "coll", "--starts", "free", "-m", "8:65536", "--step", 8192)
        self.assertEqual({line["test"] for line in lines}, {coll.EMPTY, *coll.OPERATIONS})
        self.positive(lines, 2)

    def test_one_wrong_bit_in_a_collective_is_found(self):
        for op in coll.OPERATIONS:
            if op == "barrier":
                continue
            with self.assertRaisesRegex(runner.Broken, op):
                self.bench(3, "coll", "--ops", op, "-m", 1000, "--spoil")

    def test_communicators(self):
        lines = self.bench(3, "communicators", "--messages", 300)
        self.assertEqual([line["test"] for line in lines], ["dup and free", "dup, allreduce and free", "memory that stays"])
        self.positive(lines[:2], 2)

    def test_threads_on_communicators_of_their_own_and_shared(self):
        for ranks, args in ((2, []), (4, ["--threads", 1, "--level", "single"]), (2, ["--threads", 5, "--share", 2, "--hints"]),
                            (4, ["--threads", 3, "--share", 3, "-m", "8:64", "--busy", 5])):
            for test, first in (("thread-rate", "rate of all"), ("thread-put", "rate of all"), ("thread-latency", "mean latency")):
                lines = self.bench(ranks, test, *args)
                self.assertEqual([line["test"] for line in lines], [first, "slowest by mean"] * (len(lines) // 2))
                self.assertEqual(len(lines), 8 if "-m" in args else 2)
                self.positive(lines, 2)
                self.assertTrue(all(0 < v <= 1 for line in lines[1::2] for v in line["samples"]), lines)

    def test_memory_of_lanes(self):
        lines = self.bench(2, "lanes")
        self.assertEqual([line["test"] for line in lines], [f"{of}, {kind}" for of in ("a communicator", "and a peer by it", "a pair of endpoints")
                                                             for kind in ("private", "shared")])

    def test_an_allreduce_over_threads(self):
        for ranks, args in ((2, ["--threads", 3, "-m", "8:16"]), (3, ["--threads", 1, "-m", "64"])):
            lines = self.bench(ranks, "thread-allreduce", *args)
            each = len(lines) // 3
            self.assertEqual([line["test"] for line in lines],
                             [name for name in ("fold, one allreduce", "fold, an allreduce each", "endpoints") for _ in range(each)])
            self.positive(lines, 2)

    def test_startup(self):
        lines = self.bench(3, "startup")
        self.assertEqual([line["test"] for line in lines], ["init", "finalize"])
        self.positive(lines, 1)

    def test_copies(self):
        self.positive(self.bench(2, "copies", "-m", "4096:8192"), 2)

    def test_hello(self):
        self.assertGreater(runner.hello(libraries.weft(ROOT), 4), 0)

    def test_what_it_cannot_do_it_says(self):
        for args, text in ((["nonsense"], "no test named nonsense"), (["latency", "-m", "0"], "bad value for -m"),
                           (["latency", "--no-such-option", "1"], "cannot use option"),
                           (["coll", "--starts", "soon"], "bad value for --starts"),
                           (["coll", "--ops", "bcast,nonsense"], "not all of these are known"),
                           (["coll", "--form", "nonsense"], "--form is blocking"), (["coll", "-m", "12"], "whole 8-byte words"),
                           (["thread-rate", "--level", "single"], "need --level multiple")):
            with self.assertRaisesRegex(runner.Broken, text):
                runner.execute(libraries.weft(ROOT).command(2, "weft-bench", args), libraries.weft(ROOT).environment())
        with self.assertRaisesRegex(runner.Broken, "needs exactly 2 ranks"):
            self.bench(3, "latency")

    def harness(self, *args):
        done = subprocess.run([sys.executable, "-B", str(HERE / "bench.py"), "--root", str(ROOT), *map(str, args),
                               "--libraries", "weft"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_bar_without_peers_and_repetitions_is_not_decided(self):
        shown = self.harness("bars", "--part", "collectives", "--reps", 1)
        self.assertRegex(shown, r"after collectives against before +[0-9.]+ us +[0-9.]+ us +[0-9.]+ x +- +1 +"
                                r"<= 1.03 x  not decided, n = 1")
        self.assertIn("0 met, 0 missed, 1 not decided", shown)

    def test_applications_in_all_their_forms(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = self.harness("heap", "--apps", "halo", "--reps", 1, "--out", folder, "--no-picture")
            rows = (pathlib.Path(folder) / "heap.csv").read_text().splitlines()
        self.assertEqual([row.split(",")[1] for row in rows[1:]], ["mpi", "opi", "fused"])
        self.assertRegex(shown, r"halo 15\^3 fused 5400 B +[0-9.]+ +Weft, by messages")
        shown = self.harness("heap", "--apps", "halo", "--reps", 1, "--sweep", "WEFT_CREDIT=0,1000")
        self.assertIn("WEFT_CREDIT=1000 halo", shown)

    def test_both_studies_have_tables_a_file_and_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            shown = self.harness("apps", "--orders", "3", "--elements", "1:2", "--reps", 1, "--out", folder, "--no-picture",
                                 "--report", place / "page.md")
            rows = (place / "apps.csv").read_text().splitlines()
            page = (place / "page.md").read_text()
        self.assertEqual([row.split(",")[:5] for row in rows[1:]],
                         [["sem", "N = 3", "2", size, bytes_] for size, bytes_ in (("27", "128"), ("54", "224"))]
                         + [["lj", "liquid", "2", atoms, row.split(",")[4]] for atoms, row in zip(("24", "100", "1000"), rows[3:])])
        self.assertIn("\nmass matrix, N = 3, 2 ranks", shown)
        self.assertIn("| lj, liquid, 2 ranks | Weft |", page)

    def test_inlining_saves_each_class_what_it_must(self):
        done = subprocess.run([sys.executable, "-B", str(HERE / "count" / "weft_count.py"), "--root", str(ROOT), "--classes"],
                              capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(re.findall(r"\n[123] (?:derived|predefined).* -[0-9.]+ ", done.stdout)), 3, done.stdout)

    def test_the_rig_prints_a_table_for_each_condition(self):
        shown = self.harness("busy", "--ranks", "2,4", "--hogs", "0,1", "--reps", 1, "--window", 20)
        for ranks in (2, 4):
            self.assertIn(f"\n{ranks} ranks, no hogs\n", shown)
            self.assertIn(f"\n{ranks} ranks, 1 hog on each CPU\n", shown)
        for test in ("8 B ping-pong", "flood of 10^5", "allreduce 8 B", "halo 64 KiB, nonblocking",
                     "halo 64 KiB, Sendrecv"):
            self.assertEqual(len(re.findall(rf"\n{re.escape(test)} +[um]s +[0-9.]+ \(", shown)), 4, shown)

    def test_the_rig_runs_two_jobs(self):
        shown = self.harness("busy", "--ranks", 2, "--hogs", 0, "--jobs", 2, "--tests", "allreduce", "--reps", 1,
                             "--window", 20)
        self.assertRegex(shown, r"two jobs side by side\n.*\n.*\nallreduce 8 B +us +[0-9.]+")

    def test_a_sweep_has_every_size(self):
        shown = self.harness("sweep", "--ranks", "2,4", "--sizes", "8:4096", "--reps", 1)
        for heading in ("latency, 2 ranks", "bandwidth, 2 ranks", "latency, 4 ranks", "bandwidth, 4 ranks"):
            self.assertIn(f"\n{heading} (", shown)
        # "-" where the machine changed its pace all the time
        self.assertEqual(len(re.findall(r"\n(?:[0-9]+ B|[124] KiB) +(?:[0-9.]+ \(|-)", shown)), 4 * 10, shown)

    def result_file(self, kind, *args):
        with tempfile.TemporaryDirectory() as out:
            shown = self.harness(kind, *args, "--reps", 1, "--no-picture", "--out", out)
            result = json.loads((pathlib.Path(out) / f"{kind}.json").read_text())
        self.assertEqual((result["kind"], result["broken"]), (kind, {}))
        self.assertIn("Weft", result["versions"]["weft"])
        self.assertIn("cpu", result["machine"])
        return shown, result["data"]

    def test_collectives_have_a_table_and_a_file(self):
        shown, data = self.result_file("coll", "--ranks", "2,3", "--ops", "barrier,alltoallw", "--sizes", "8:512", "--step", 64,
                                       "--forms", "blocking,persistent")
        for ranks, form in (("2", "blocking"), ("3", "persistent")):
            self.assertIn(f"\nalltoallw, {form}, {ranks} ranks (us a call)\n", shown)
            self.assertEqual(list(data[ranks][form]["alltoallw"]), ["8", "512"])
            self.assertEqual(len(data[ranks][form]["barrier"]["0"]["weft"]), 1)

    def test_threads_have_tables_and_a_file(self):
        shown, data = self.result_file("threads", "--threads", "1,2", "--modes", "everywhere,serial+lanes,share 2,busy 10",
                                       "--tests", "rate,put,startup", "--window", 5)
        self.assertIn("\nrate: slowest by mean 8 B\n", shown)
        for test in ("rate", "put"):
            self.assertEqual(list(data[test]), ["everywhere", "serial+lanes", "share 2", "busy 10"])
        self.assertEqual([len(by["weft"]) for mode in data["startup"].values() for by in mode.values()], [1] * 8)

    def test_the_demo_writes_its_numbers(self):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, "-B", str(HERE / "demo.py"), "--build-dir", str(ROOT), "--quick",
                                   "--libraries", "weft", "--no-picture", "--out", out], capture_output=True, text=True,
                                  timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads((pathlib.Path(out) / "weft.json").read_text())
        for heading in ("Latency", "Bandwidth", "Rate"):
            self.assertIn(f"\n{heading} (", done.stdout)
        self.assertEqual(len(result["data"]["weft"]["latency"]), 23)
        self.assertIn("Weft: bandwidth, 1 of 1", done.stderr)  # the progress it made


if __name__ == "__main__":
    at = sys.argv.index("--root")
    ROOT = pathlib.Path(sys.argv[at + 1]).resolve()
    del sys.argv[at:at + 2]
    unittest.main()
