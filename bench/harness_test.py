#!/usr/bin/env python3
"""The harness itself: its arithmetic, its verdicts, its guards against measuring the wrong thing, its comparators.

harness_test.py --programs DIR   (the folder of weft-bench-plain)
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "count")]
import callgrind  # noqa: E402
import weft_count  # noqa: E402
from weft_bench import bars, libraries, machine, runner, text  # noqa: E402

PROGRAMS = None


def fake_library(folder, name, expects, body):
    """A launcher and a weft-bench that print what the test wants."""
    program = folder / "weft-bench"
    program.write_text("#!/bin/sh\n" + body)
    launcher = folder / "mpiexec"
    launcher.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    for path in (program, launcher):
        path.chmod(0o755)
    return libraries.Library(name, name, [str(launcher)], folder, expects)


class Text(unittest.TestCase):
    def test_numbers_keep_three_digits(self):
        shown = [text.number(v) for v in (0.083456, 1.2549, 37.42, 1180.4, 0, None)]
        self.assertEqual(shown, ["0.0835", "1.25", "37.4", "1180", "0", "-"])

    def test_sizes(self):
        self.assertEqual([text.size_name(s) for s in (1, 1000, 4096, 4 << 20)], ["1 B", "1000 B", "4 KiB", "4 MiB"])

    def test_geometric_mean(self):
        self.assertAlmostEqual(text.geometric_mean([2, 8]), 4)

    def test_table_aligns(self):
        lines = text.table(["name", "value"], [["a", 1], ["bcd", 100]]).splitlines()
        self.assertEqual(lines[2:], ["a         1", "bcd     100"])


class Verdicts(unittest.TestCase):
    def session(self, **samples):
        s = bars.Session([libraries.Library(n, n.upper(), [], pathlib.Path(), "") for n in ("weft", "a", "b")],
                         None, 1, False)
        for name, values in samples.items():
            for rep, value in enumerate(values):
                s.add(rep, name, "k", value)
        return s

    def test_cost_below_the_best_peer(self):
        row = bars.against_best(self.session(weft=[2, 1, 3], a=[4, 4, 4], b=[5]), "w", "k", "us", True, 1.0, True)
        self.assertEqual((row.ratio, row.verdict()), (0.5, "met"))

    def test_a_change_of_pace_meets_both_sides(self):
        row = bars.against_best(self.session(weft=[1, 10, 1], a=[2, 20, 20], b=[50]), "w", "k", "us", True, 1.0, True)
        self.assertEqual(row.ratio, 0.5)

    def paced(self, weft, a):
        s = self.session()
        for name, values in (("weft", weft), ("a", a)):
            for rep, (value, line) in enumerate(values):
                s.add(rep, name, "k", value, line)
        return s

    def test_only_what_met_one_pace_is_compared(self):
        s = self.paced([(1, 30), (10, 150), (1, 40)], [(30, 160), (2, 35), (2, 31)])
        self.assertEqual(list(s.together("k", "a", "k")), [(0, 1), (1, 0), (2, 2)])
        self.assertEqual(s.ratio("k", "a"), 0.5)
        self.assertIsNone(self.paced([(1, 30)], [(2, 150)]).ratio("k", "a"))

    def test_windows_of_another_pace_are_left_out(self):
        record = {"samples": [1, 9, 1, 1], "line_ns": [30, 31, 150, 32, 30]}
        self.assertEqual(bars.at_one_pace(record), (1, 31))
        self.assertEqual(bars.at_one_pace({"samples": [1, 3], "line_ns": [30, 150, 30]}), (None, None))
        self.assertEqual(bars.at_one_pace({"samples": [1, 3, 2]}), (2, None))

    def test_the_best_peer_is_the_best_at_the_same_pace(self):
        s = self.paced([(10, 150), (10, 150)], [(20, 150), (20, 150)])
        for rep in range(2):
            s.add(rep, "b", "k", 3, 30)   # faster, but while the machine was
        s.add(2, "b", "k", 40, 150)
        self.assertEqual(s.best_peer("k", min), "a")

    def test_cost_above_the_best_peer(self):
        row = bars.against_best(self.session(weft=[4.5], a=[4], b=[50]), "w", "k", "us", True, 1.0, True)
        self.assertEqual(row.verdict(), "MISSED")

    def test_latency_as_merit(self):
        row = bars.against_best(self.session(weft=[4], a=[2], b=[6]), "w", "k", "us", True, 0.9, False)
        self.assertEqual((row.ratio, row.verdict()), (0.5, "MISSED"))

    def test_bandwidth_as_merit(self):
        row = bars.against_best(self.session(weft=[40], a=[20], b=[10]), "w", "k", "GB/s", False, 2.0, False)
        self.assertEqual((row.ratio, row.verdict()), (2.0, "met"))

    def test_without_weft_nothing_is_met(self):
        row = bars.against_best(self.session(a=[20]), "w", "k", "GB/s", False, 2.0, False)
        self.assertEqual(row.verdict(), "Weft not measured")


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_records_of_the_right_library(self):
        body = """echo '{"test":"header","library":"Alpha 1.0","ranks":2}'
echo noise; echo '{"test":"latency","bytes":8,"unit":"us","samples":[1,2]}'\n"""
        lines = runner.bench(fake_library(self.folder, "a", "Alpha", body), 2, ["latency"])
        self.assertEqual([line["samples"] for line in lines], [[1, 2]])

    def test_the_wrong_library_is_refused(self):
        body = """echo '{"test":"header","library":"Beta 1.0","ranks":2}'\n"""
        with self.assertRaisesRegex(runner.Broken, "ran on Beta"):
            runner.bench(fake_library(self.folder, "a", "Alpha", body), 2, ["latency"])

    def test_a_failure_says_why(self):
        with self.assertRaisesRegex(runner.Broken, "exit status 3.*no such device"):
            runner.bench(fake_library(self.folder, "a", "Alpha", "echo no such device >&2; exit 3\n"), 2, ["latency"])

    def test_a_hang_ends(self):
        with self.assertRaisesRegex(runner.Broken, "did not finish within"):
            runner.bench(fake_library(self.folder, "a", "Alpha", "sleep 600\n"), 2, ["latency"], timeout_s=0.2)

    def test_foreign_settings_do_not_leak(self):
        import os
        os.environ["UCX_TLS"] = "tcp"
        self.addCleanup(os.environ.pop, "UCX_TLS")
        library = libraries.Library("a", "A", [], self.folder, "", {"LD_LIBRARY_PATH": "/x"})
        self.assertNotIn("UCX_TLS", library.environment())
        self.assertEqual(library.environment()["LD_LIBRARY_PATH"], "/x")


class Counting(unittest.TestCase):
    def test_phases_and_their_slope(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            costs = [("send 64", 6400 + 70), ("send 32", 3200 + 70), ("empty 64", 192 + 5), ("empty 32", 96 + 5)]
            for i, (name, cost) in enumerate(costs):
                (folder / f"callgrind.1.{i}").write_text(
                    f"desc: Trigger: Client Request: {name}\nsummary: {cost}\ntotals: {cost + 1}\n")
            (folder / "callgrind.1").write_text("desc: Trigger: Program termination\nsummary: 7\n")
            measured, files = callgrind.phases(folder)
        self.assertEqual(weft_count.per_call(measured, "send", slope=True), 100 - 3)
        self.assertEqual(weft_count.per_call(measured, "send", slope=False), 6470 / 64)
        self.assertEqual(files["send", 64].name, "callgrind.1.0")

    def test_growth_is_seen_and_slack_is_small(self):
        row = weft_count.ROWS[0]
        self.assertTrue(weft_count.verdict(row, "default", {"count": 81}, {"count": 80})[1])
        self.assertFalse(weft_count.verdict(row, "default", {"count": 80}, {"count": 80})[1])
        self.assertTrue(weft_count.verdict(row, "default", {"count": 80, "plt": 1}, {"count": 80, "plt": 0})[1])
        self.assertFalse(weft_count.verdict(row, "default", {"count": 80}, None)[1])

    def test_over_budget_is_said(self):
        row = next(r for r in weft_count.ROWS if r.most)
        said = weft_count.verdict(row, "default", {"count": row.budget["default"] + 1, "atomic": 2, "plt": 0}, None)[0]
        self.assertEqual(said, "new, over budget, atomic over 1")

    def test_own_costs_of_a_dump(self):
        with tempfile.TemporaryDirectory() as scratch:
            dump = pathlib.Path(scratch) / "dump"
            dump.write_text("positions: instr line\nob=(1) /x/libmpi_abi.so.1\nfl=(1) a.cpp\nfn=(1) send\n"
                            "0x100 10 64\n+4 * 64\nfi=(2) b.hpp\n+1 -3 32\ncfn=(2) other\n"
                            "calls=64 0x900 5\n0x110 10 6400\nfe=(1)\n+2 +1 64\n")
            costs = callgrind.own_costs(dump)
            kinds = callgrind.kinds_executed(dump, "libmpi_abi.so.1", {0x104: "atomic", 0x112: "plt"}, 64)
        spots = {(s.file, s.line, s.address): cost for s, cost in costs.items()}
        self.assertEqual(spots, {("a.cpp", 10, 0x100): 64, ("a.cpp", 10, 0x104): 64, ("b.hpp", 7, 0x105): 32,
                                 ("a.cpp", 11, 0x112): 64})
        self.assertEqual(kinds, {"atomic": 1, "indirect": 0, "plt": 1})

    def test_every_budget_is_named_once(self):
        self.assertEqual(len({row.what for row in weft_count.ROWS}), len(weft_count.ROWS))


class Plain(unittest.TestCase):
    def run_plain(self, *args):
        done = subprocess.run([str(PROGRAMS / "weft-bench-plain"), *args], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def test_ring_and_pingpong_report_every_repetition(self):
        cpus = ",".join(map(str, runner.cpus()))
        for args in (["ring", "-n", "5"], ["pingpong"]):
            status, out = self.run_plain(*args, "--hops", "500", "-r", "3", "--cpus", cpus)
            self.assertEqual(status, 0)
            line = json.loads(out)
            self.assertEqual(len(line["samples"]), 3)
            self.assertTrue(all(0 < v < 1e6 for v in line["samples"]))

    def test_bad_arguments_are_refused(self):
        for args in ([], ["nonsense"], ["ring", "-n", "1"], ["ring", "-n", "8", "--hops", "2"]):
            self.assertEqual(self.run_plain(*args)[0], 2)


class Machine(unittest.TestCase):
    def test_a_caption_names_what_is_not_default(self):
        m = {"cpu": "X", "cpus": 2, "kernel": "6", "date": "d", "load": 0, "settings": {"WEFT_CMA": "0"}}
        self.assertIn("WEFT_CMA=0", machine.caption(m))
        self.assertEqual(list(machine.warnings({**m, "load": 0.1})), [])
        self.assertEqual(len(list(machine.warnings({**m, "load": 3.0, "cpus": 1}))), 2)


if __name__ == "__main__":
    if "--programs" in sys.argv:
        at = sys.argv.index("--programs")
        PROGRAMS = pathlib.Path(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
