#!/usr/bin/env python3
"""The harness itself: its arithmetic, its verdicts, its guards against measuring the wrong thing, its comparators.

harness_test.py --programs DIR   (the folder of weft-bench-plain and weft-bench-cells)
"""
import contextlib
import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "count")]
import callgrind  # noqa: E402
import classes  # noqa: E402
import weft_count  # noqa: E402
from weft_bench import bars, beside, busy, heap, interval, libraries, machine, rows, traces, tuning  # noqa: E402
from weft_bench import coll, coll_tuning, figures, figures_page, runner, session, studies, studies_page, sweep, text, threads  # noqa: E402

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


class Tuning(unittest.TestCase):
    """Thresholds of made-up machines."""
    def samples(self, seconds, reps=7):
        """seconds(way, size), the same in both tests, with a little noise."""
        return {(way, test, size): {rep: seconds(way, size) * (1 + 0.001 * rep) for rep in range(reps)}
                for way in tuning.candidates() for test in ("latency", "bandwidth") for size in tuning.SIZES}

    @staticmethod
    def alike(way, size):
        return size

    def test_what_is_no_faster_stays_as_shipped(self):
        self.assertEqual(tuning.choose(self.samples(self.alike)), tuning.SHIPPED)
        self.assertEqual(tuning.choose(self.samples(lambda way, size: size / (2 if way.copies else 1), reps=3)), tuning.SHIPPED, "three launches decide nothing")

    def test_thresholds_move_to_where_the_ways_cross(self):
        def slow_eagerly(way, size):
            return 2 * size if way == tuning.EAGER and size >= 4096 else size
        self.assertEqual(tuning.choose(self.samples(slow_eagerly))["WEFT_MAPPED_MIN"], 4096)

        def slow_together(way, size):
            return 2 * size if way.block and size < 65536 else size
        self.assertEqual(tuning.choose(self.samples(slow_together))["WEFT_MAPPED_BOTH"], 65536)

        def large_blocks(way, size):
            return size / 2 if way.block == 16384 else size
        chosen = tuning.choose(self.samples(large_blocks))
        self.assertEqual((chosen["WEFT_MAPPED_BLOCK"], chosen["WEFT_MAPPED_BOTH"]), (16384, tuning.SIZES[0]))

    def test_the_file_says_where_it_comes_from(self):
        samples = self.samples(self.alike)
        written = tuning.file_text({"WEFT_MAPPED_MIN": 4096, "WEFT_MAPPED_BOTH": 16384}, "a machine", "a version", samples, 7)
        lines = written.splitlines()
        self.assertEqual([line.split()[0] for line in lines if not line.startswith("#")], ["WEFT_MAPPED_MIN=4096", "WEFT_MAPPED_BOTH=16384"])
        self.assertTrue(any("a machine" in line for line in lines) and any("a version" in line for line in lines))
        self.assertTrue(any("64 KiB, latency" in line for line in lines), written)


class CollTuning(unittest.TestCase):
    SIZES = [8, 512, 4096, 32768, 262144]

    @staticmethod
    def samples(time_of, reps=7, operation="allreduce", ranks=8):
        """What time_of(algorithm, size) takes, with a spread of 2 % between launches that all algorithms share."""
        found = coll_tuning.Samples()
        for size in CollTuning.SIZES:
            for algorithm in (coll_tuning.SHIPPED, coll_tuning.CHOSEN, *coll_tuning.ALGORITHMS[operation]):
                for rep in range(reps):
                    found.add(ranks, operation, size, algorithm, rep, time_of(algorithm, size) * (1 + rep % 3 / 100))
        return found

    @staticmethod
    def ring_above(size, gain=0.5):
        return lambda algorithm, at: gain if algorithm in ("ring", coll_tuning.CHOSEN) and at >= size else 1

    def test_only_what_is_surely_and_clearly_faster(self):
        for time_of, reps in ((self.ring_above(1, 1), 7), (self.ring_above(1, 0.95), 7), (self.ring_above(1), 5)):
            self.assertEqual(coll_tuning.choose(self.samples(time_of, reps), 8, "allreduce", self.SIZES), [])

        def unsteady(algorithm, size):
            unsteady.calls += 1
            return (0.5 if unsteady.calls % 4 else 1.5) if algorithm == "ring" else 1
        unsteady.calls = 0
        found = coll_tuning.Samples()
        for rep in range(7):
            for algorithm in (coll_tuning.SHIPPED, "ring"):
                found.add(8, "allreduce", 8, algorithm, rep, unsteady(algorithm, 8))
        self.assertEqual(coll_tuning.choose(found, 8, "allreduce", [8]), [])

    def test_adjacent_sizes_are_one_row(self):
        rows = coll_tuning.choose(self.samples(self.ring_above(32768)), 8, "allreduce", self.SIZES)
        self.assertEqual([(row.sizes, row.algorithm, row.ratio) for row in rows], [((32768, 262144), "ring", 0.5)])
        self.assertEqual(coll_tuning.line(rows[0], [2, 8], self.SIZES, 2).split(), ["allreduce", "8-15", "shared", "32768-", "ring"])
        self.assertEqual(coll_tuning.line(rows[0], [2, 8, 9], self.SIZES, 16).split(), ["allreduce", "8", "own", "32768-", "ring"])

    def test_no_row_ends_lines_in_their_middle(self):
        among = self.samples(lambda algorithm, size: 0.5 if algorithm == "ring" and size == 512 else 1)
        self.assertEqual(coll_tuning.choose(among, 8, "allreduce", self.SIZES), [])
        last = self.samples(lambda algorithm, size: 0.5 if algorithm == "ring" and size <= 4096 else 1)
        row, = coll_tuning.choose(last, 8, "allreduce", self.SIZES)
        self.assertEqual(coll_tuning.line(row, [8], self.SIZES, 2).split()[3], "0-32767")

    def test_a_row_is_confirmed_or_dropped(self):
        rows = coll_tuning.choose(self.samples(self.ring_above(32768)), 8, "allreduce", self.SIZES)
        self.assertEqual(coll_tuning.confirmed(self.samples(self.ring_above(32768)), rows, lambda o: self.SIZES), rows)
        self.assertEqual(coll_tuning.confirmed(self.samples(self.ring_above(262144)), rows, lambda o: self.SIZES), [])

    def test_the_table_counts_all_blocks_of_some_operations(self):
        self.assertEqual([coll_tuning.table_bytes(o, 8, 512) for o in ("alltoall", "scatter", "reduce_scatter", "gather", "allgather", "scan")],
                         [4096, 4096, 4096, 512, 512, 512])

    def test_every_algorithm_is_forced_once(self):
        columns = coll_tuning.launches(list(coll_tuning.ALGORITHMS))
        for operation, algorithms in coll_tuning.ALGORITHMS.items():
            self.assertEqual([c[operation] for c in columns if operation in c], list(algorithms))
        self.assertEqual(coll_tuning.forced({"bcast": "ring", "scan": "chain"}), {"WEFT_COLL_FORCE": "bcast=ring,scan=chain"})

    def test_the_picture_has_every_algorithm(self):
        data = coll_tuning.collected(self.samples(self.ring_above(1)), [8], ["allreduce"], lambda o: self.SIZES)
        self.assertEqual(set(data[8]["blocking"]["allreduce"][8]), {"weft", *coll_tuning.ALGORITHMS["allreduce"]})


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


class Intervals(unittest.TestCase):
    def test_which_samples_enclose_the_median(self):
        self.assertIsNone(interval.median_interval([1, 2, 3, 4, 5]))
        self.assertEqual(interval.median_interval([6, 2, 3, 1, 5, 4]), (1, 6))
        self.assertEqual(interval.median_interval(range(7)), (0, 6))
        self.assertEqual(interval.median_interval(range(8)), (0, 7))
        self.assertEqual(interval.median_interval(range(9)), (1, 7))
        self.assertEqual(interval.median_interval(range(12)), (2, 9))
        self.assertEqual(interval.median_interval(range(100)), (39, 60))  # ranks 40 and 61

    def test_it_holds_the_true_median_as_often_as_it_says(self):
        import random
        draw = random.Random(11)
        for n in (6, 7, 9, 15, 31):
            held = 0
            for _ in range(2000):
                low, high = interval.median_interval([draw.expovariate(1) for _ in range(n)])
                held += low <= 0.693147 <= high
            self.assertGreaterEqual(held, 0.95 * 2000 - 45)  # 45: more than four standard deviations of the count


class Gains(unittest.TestCase):
    def setUp(self):
        found = [libraries.Library(n, n.upper(), [], pathlib.Path(), "") for n in ("weft", "a", "b")]
        self.session = session.Session(found, None, 7)
        self.series = {}
        for form in ("mpi", "fused"):
            name = f"app {form} communication 8 B"
            self.series[name] = heap.Series("app", f"{form} communication", 8, "us", True)
        for rep in range(7):
            for name, form, value in (("weft", "mpi", 8), ("weft", "fused", 2), ("a", "mpi", 4), ("b", "mpi", 10), ("a", "fused", 1)):
                self.session.add(rep, name, f"app {form} communication 8 B", value)

    def test_against_the_best_peer_and_the_own_messages(self):
        records = [g.record() for g in heap.gains(self.session, self.series)]
        shown = [(r["what"].split()[1], r["against"].split(",")[0], r["improvement"], r["interval"]) for r in records]
        self.assertEqual(shown, [("mpi", "A", -100, (-100, -100)), ("fused", "A", 50, (50, 50)), ("fused", "WEFT", 75, (75, 75))])
        self.assertEqual([r["other_definition"] for r in records], [-50, 100, 300])

    def test_a_sweep_is_weft_with_each_value(self):
        launches = heap.plan_of(["pool"], "WEFT_X=1,2")
        self.assertEqual([(launch.key, launch.env) for launch in launches], [("WEFT_X=1 pool", {"WEFT_X": "1"}), ("WEFT_X=2 pool", {"WEFT_X": "2"})])


class Figures(unittest.TestCase):
    """The figures of the paper on partitioned communication, from samples that are made up."""

    def setUp(self):
        self.session = session.Session([libraries.Library("weft", "Weft", [], pathlib.Path(), "")], None, 1)

    def fill(self, launches, value, samples):
        for launch, of_sizes in zip(launches, samples):
            for size, sample in zip(launch.sizes, of_sizes):
                self.session.add(0, "weft", launch.key(size, value), sample)

    def verdicts(self, found):
        return [verdict for _, _, verdict in found]

    def test_a_shape_holds_only_where_it_was_measured(self):
        self.assertEqual(self.verdicts(figures.checks(self.session)), ["not measured"] * 9)
        self.fill(figures.HOT.values(), "overhead", [(1.2, 1, 1.05, 0.95), (5, 1, 1, 1.1), (20, 3, 1, 1.2)])
        self.assertEqual(self.verdicts(figures.check_overhead(self.session)), ["holds"] * 3)
        self.fill(figures.HOT.values(), "overhead", [(6, 1, 1.5, 0.95), (5, 1, 1, 1.1), (20, 3, 1, 2)])
        self.assertEqual(self.verdicts(figures.check_overhead(self.session)), ["does not hold"] * 3)

    def test_the_order_of_noise_models_and_of_policies(self):
        self.fill([figures.SINGLE[16], figures.UNIFORM[16], figures.GAUSSIAN, figures.UNIFORM[8], figures.ONE_MESSAGE],
                  "availability", [(0.9,), (0.8,), (0.95,)])
        self.fill([figures.ONE_MESSAGE, figures.UNIFORM[8]], "early_bird", [(0.9,), (0.9,)])
        self.fill([figures.ONE_MESSAGE, figures.UNIFORM[8]], "early_bird_partitions", [(0,), (0.9,)])
        self.assertEqual(self.verdicts(figures.check_noise(self.session)), ["does not hold", "does not hold", "holds"])
        self.assertEqual(figures.verdict([0.999, 1, 1], figures.ordered), "no difference")

    def test_pieces_add_up_and_make_the_page(self):
        self.fill(figures.PATTERNS.values(), "time_us", [(30, 30), (20, 20), (10, 15)])
        self.assertEqual(figures.gain_of_sweep(self.session), 2)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "figures.json").write_text(json.dumps({"labels": {"peer": "Peer"}, "samples": self.session.samples}))
            more = session.Session([], None, 1)
            self.assertEqual(figures.take_up(more, folder), 1)
            page = pathlib.Path(folder, "page.md")
            with contextlib.redirect_stdout(io.StringIO()):
                figures_page.write(page, self.session, "a machine", figures.sections(self.session), None)
            self.assertIn("| 64 KiB | 30.0 | 20.0 | 10.0 |", page.read_text())
        self.assertEqual(more.samples, self.session.samples)


class Studies(unittest.TestCase):
    """A library that takes 4 us besides the work of 0.5 us a point; a peer that takes 8."""
    SIZES = (8, 64, 512)

    def setUp(self):
        found = [libraries.Library(n, n.upper(), [], pathlib.Path(), "") for n in ("weft", "peer")]
        self.session = session.Session(found, None, 7)
        self.points = [studies.Point("sem", "N = 2", 2, size) for size in self.SIZES]
        for point in self.points:
            for name, overhead in (("weft", 4), ("peer", 8)):
                for rep in range(7):
                    self.session.add(rep, name, point.key(studies.TOGETHER), overhead + 0.5 * point.per_rank)
                    self.session.add(rep, name, point.key(studies.ALONE), 0.5 * point.per_rank)

    def test_the_model_is_what_was_put_in(self):
        model = studies.model_of(self.session, self.points, "peer")
        self.assertEqual((model.overhead, model.work, model.half), (8, 0.5, 16))
        self.assertEqual([studies.efficiency(self.session, p, "peer") for p in self.points], [model.efficiency(n) for n in self.SIZES])

    def test_half_the_overhead_is_half_the_time_at_equal_energy(self):
        mine, other = (studies.model_of(self.session, self.points, n) for n in ("weft", "peer"))
        work = other.work * 64  # of a rank on P ranks; half of it on 2 P
        self.assertEqual(2 * (mine.overhead + work / 2), other.overhead + work)

    def test_gains_are_the_peers_time_by_ours(self):
        self.assertEqual(studies.gain(self.session, self.points[0]), ("peer", 1.5, (1.5, 1.5)))
        self.assertEqual(studies.gains_between(self.session, self.points, 1, 64), "1.11 to 1.50")
        self.assertEqual(studies.gains_between(self.session, self.points, 1000, 2000), "-")

    def test_records_are_told_apart(self):
        sem = next(iter(studies.sem_launches([2], [5], (1, 4))))
        self.assertEqual(studies.read_sem(sem, {"test": "work, 4 elements"}), (studies.Point("sem", "N = 5", 2, 500), studies.ALONE, 1))
        together, alone = list(studies.lj_launches([4]))[:2]
        self.assertEqual(studies.read_lj(together, {"test": "mpi application"}), (studies.Point("lj", "liquid", 4, 24), studies.TOGETHER, 1))
        self.assertEqual(studies.read_lj(alone, {"test": "mpi application"})[1:], (studies.ALONE, min(4, len(runner.cpus()))))
        self.assertIsNone(studies.read_lj(alone, {"test": "mpi rebuild"}))

    def test_each_statement_has_its_finding(self):
        sizes = {point: 8 for point in self.points}
        self.assertEqual(len(studies.findings(self.session, sizes)), len(studies_page.STATEMENTS))


class Classes(unittest.TestCase):
    def found(self, *counts):
        return {what: {stage: classes.Program(count, 0, 0) for stage, count in enumerate(each)} for what, each in zip(classes.CLASSES, counts)}

    def test_each_class_falls_at_its_stage(self):
        self.assertEqual(classes.breaches(self.found((70, 36, 36), (73, 22, 22), (73, 35, 22))), [])

    def test_what_falls_elsewhere_is_told(self):
        self.assertEqual(classes.breaches(self.found((70, 36, 30), (73, 22, 22), (73, 35, 22))), ["class 1 changes at stage 2"])
        self.assertEqual(classes.breaches(self.found((70, 36, 36), (73, 35, 35), (73, 35, 35))),
                         ["class 2 does not fall below class 3 at stage 1", "class 3 does not fall to class 2 at stage 2"])


class Recordings(unittest.TestCase):
    MAP = "pid 7\nmarks {marks}\n200000-300000 rw-s 00001000 00:01 5 /memfd:x (deleted)\n"

    def known(self, rank, marks):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "map"
            path.write_text(self.MAP.format(marks=marks).replace("200000-300000", f"{2 + rank}00000-{3 + rank}00000"))
            return traces.Map(path, rank)

    def test_shared_memory_is_the_same_byte_wherever_it_is_mapped(self):
        files, both = {}, [self.known(rank, "8000") for rank in range(2)]
        self.assertEqual(both[0].canonical(0x200040, files), both[1].canonical(0x300040, files))
        self.assertNotEqual(both[0].canonical(0x40, files), both[1].canonical(0x40, files))

    def test_a_recording_is_cut_by_its_marks(self):
        known = self.known(0, "8000")
        log = ["I  04000000,3\n", " S 00000100,8\n", " S 00008008,8\n", " L 00000040,8\n", " M 00000080,4\n", "==7== text\n", " S 00008010,8\n"]
        parts = traces.phases(log, known, {})
        self.assertEqual([mark for mark, _ in parts], [traces.FIRST, traces.SEND])
        self.assertEqual([(kind, size) for kind, _, size in parts[0][1]], [("L", 8), ("S", 4)])

    def test_turns_are_put_in_the_order_of_the_exchange(self):
        def turn(rank):
            return {mark: [("L", 0x1000 * rank + 0x100 * mark, 8)] for mark in (traces.FIRST, traces.SEND, traces.RECEIVE, traces.SECOND)}
        lines = list(traces.script([[turn(0)], [turn(1)]]))
        self.assertEqual([line for line in lines if line[0] not in "01"], ["forget\n", "counts exchange\n", "forget\n", "counts reading\n"])
        self.assertEqual([line.split()[0] for line in lines if line[0] in "01"], ["0", "1", "0", "1", "1", "0", "0", "1"])

    def test_the_simulator_reads_them(self):
        if not (PROGRAMS / "weft-cachesim").exists():
            self.skipTest("the applications are not built here")
        text_in = "".join(f"0 S {64 * i:x} 8\n" for i in range(10)) + "counts a\nforget\n1 L 0 128\ncounts b\n"
        done = subprocess.run([str(PROGRAMS / "weft-cachesim")], input=text_in, capture_output=True, text=True, check=True)
        a, b = map(json.loads, done.stdout.splitlines())
        self.assertEqual((a["cores"][0]["accesses"], a["cores"][0]["l1"], a["cores"][0]["l3"]), (10, 10, 10))
        self.assertEqual((b["cores"][1]["l1"], b["cores"][1]["l3"], b["cores"][1]["from_other"]), (2, 0, 2))
        bad = subprocess.run([str(PROGRAMS / "weft-cachesim")], input="2 L 0 8\n", capture_output=True, text=True)
        self.assertEqual(bad.returncode, 1)
        self.assertIn("line 1", bad.stderr)


class Verdicts(unittest.TestCase):
    def session(self, **samples):
        found = [libraries.Library(n, n.upper(), [], pathlib.Path(), "") for n in ("weft", "a", "b")]
        s = session.Session(found, None, 1)
        for name, values in samples.items():
            for rep, value in enumerate(values):
                s.add(rep, name, "k", value)
        return s

    def cost(self, s, limit=1.0):
        return rows.against_best(s, "w", "k", "us", True, limit, True)

    def merit(self, s, limit, lower_is_better=True):
        return rows.against_best(s, "w", "k", "us", lower_is_better, limit, False)

    def test_cost_below_the_best_peer(self):
        row = self.cost(self.session(weft=[2, 1, 3] * 3, a=[4, 4, 4] * 3, b=[5]))
        self.assertEqual((row.ratio, row.interval(), row.verdict()), (0.5, (0.25, 0.75), "met"))

    def test_a_change_of_pace_meets_both_sides(self):
        self.assertEqual(self.cost(self.session(weft=[1, 10, 1], a=[2, 20, 20], b=[50])).ratio, 0.5)

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
        self.assertEqual(session.at_one_pace(record), (1, 31))
        self.assertEqual(session.at_one_pace({"samples": [1, 3], "line_ns": [30, 150, 30]}), (None, None))
        self.assertEqual(session.at_one_pace({"samples": [1, 3, 2]}), (2, None))

    def test_the_best_peer_is_the_best_at_the_same_pace(self):
        s = self.paced([(10, 150), (10, 150)], [(20, 150), (20, 150)])
        for rep in range(2):
            s.add(rep, "b", "k", 3, 30)   # faster, but while the machine was
        s.add(2, "b", "k", 40, 150)
        self.assertEqual(s.best_peer("k", min), "a")

    def test_missed_only_where_the_whole_interval_is(self):
        self.assertEqual(self.cost(self.session(weft=[4.5] * 6, a=[4] * 6, b=[50] * 6)).verdict(), "MISSED")
        self.assertEqual(self.cost(self.session(weft=[4.5] * 5 + [4], a=[4] * 6)).verdict(), "not decided")
        self.assertEqual(self.cost(self.session(weft=[3] * 5 + [4.5], a=[4] * 6)).verdict(), "not decided")
        of_nine_one_may_stray = self.session(weft=[4.5] * 8 + [3], a=[4] * 9)
        self.assertEqual(self.cost(of_nine_one_may_stray).verdict(), "MISSED")
        self.assertEqual(self.cost(self.session(weft=[4.5] * 5, a=[4] * 5)).verdict(), "not decided, n = 5")
        self.assertEqual(self.cost(self.session(weft=[4] * 6, a=[4] * 6)).verdict(), "met")

    def test_latency_as_merit(self):
        row = self.merit(self.session(weft=[4] * 6, a=[2] * 6, b=[6] * 6), 0.9)
        self.assertEqual((row.ratio, row.verdict()), (0.5, "MISSED"))

    def test_bandwidth_as_merit(self):
        row = self.merit(self.session(weft=[40] * 6, a=[20] * 6, b=[10] * 6), 2.0, lower_is_better=False)
        self.assertEqual((row.ratio, row.verdict()), (2.0, "met"))

    def test_without_weft_nothing_is_met(self):
        self.assertEqual(self.merit(self.session(a=[20]), 2.0).verdict(), "Weft not measured")

    def test_no_limit_is_for_information(self):
        row = self.merit(self.session(weft=[4], a=[2]), None)
        self.assertEqual((row.ratio, row.verdict()), (0.5, "for information"))

    def test_a_count_needs_no_repetitions(self):
        self.assertEqual(rows.Row("w", "", "", {0: 1.01}, 1, exact=True).verdict(), "MISSED")
        self.assertEqual(rows.Row("w", "", "", {0: 1.0}, 1, exact=True).verdict(), "met")

    def test_a_mean_is_taken_within_repetitions(self):
        parts = [rows.Row("a", "", "", dict(enumerate([2.0] * 6 + [8.0]))),
                 rows.Row("b", "", "", dict(enumerate([0.5] * 6)))]
        mean = rows.mean_of("m", parts, 1.0)
        self.assertEqual((mean.ratio, len(mean.ratios), mean.verdict()), (1.0, 6, "met"))
        none_whole = rows.mean_of("m", [rows.Row("a", "", "", {0: 4.0}), rows.Row("b", "", "", {1: 1.0})], 1.0)
        self.assertEqual((none_whole.ratio, none_whole.verdict()), (2.0, "not decided, n = 0"))
        self.assertIsNone(rows.mean_of("m", [parts[0], rows.Row("b", "", "")], 1.0).ratio)

    def test_the_best_peer_at_its_best_settings(self):
        s = self.session(weft=[8] * 6)
        s.labels = {"weft": "Weft", "mpich": "MPICH", "openmpi": "Open MPI"}
        for rep in range(6):
            for at, name, value in (("k", "mpich", 1), ("k+lanes", "mpich", 4), ("k", "openmpi", 2)):
                s.add(rep, name, at, value)
        row = bars.best_of_peers(s, "w", "k", ["k", "k+lanes", "k not measured"], "M/s", 4, 2)
        self.assertEqual((row.ratio, row.verdict()), (2, "MISSED"))
        self.assertEqual(row.against, "4.00 M/s (MPICH, MPIR_CVAR_CH4_NUM_VCIS=2, hints)")

    def test_every_measurement_feeds_a_row(self):
        """A row whose key is misspelt would never be measured."""
        for group, (measurements, make_rows) in bars.GROUPS.items():
            asked = set()

            class Recorder(session.Session):
                def middle(self, key, name="weft"):
                    asked.add(key)
            make_rows(Recorder([], None, 7))
            for measurement in measurements:
                self.assertTrue(any(key.startswith(measurement.key) for key in asked), (group, measurement.key))
            for key in asked:
                self.assertTrue(any(key.startswith(measurement.key) for measurement in measurements), (group, key))

    def test_a_part_is_chosen_by_name(self):
        plan = list(bars.chosen(["core", "busy"], "busy 8"))
        self.assertEqual([(group, [m.key for m in ms]) for group, ms, _ in plan], [("busy", ["busy 8"])])
        plan = list(bars.chosen(["core", "busy"], "busy 8,rate,limits"))
        self.assertEqual([m.key for _, ms, _ in plan for m in ms], ["limits", "rate 8 B", "busy 8"])


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

    def test_settings_of_one_library_reach_it_and_leave_others_out(self):
        body = """echo '{"test":"header","library":"Alpha 1.0","ranks":2}'
echo '{"test":"t","bytes":8,"unit":"us","samples":['${CHANNELS:-0}']}'\n"""
        found = [fake_library(self.folder, name, "Alpha", body) for name in ("a", "b")]
        s = session.Session(found, None, 1)
        s.progress = text.Progress(1, open(os.devnull, "w"))
        session.by_bench("k", 2, ["t"], settings={"a": {"CHANNELS": "7"}}, shown=False).run(s, 0)
        session.by_bench("as it comes", 2, ["t"], shown=False).run(s, 0)
        self.assertEqual(s.samples, {"k": {"a": {0: 7}}, "as it comes": {"a": {0: 0}, "b": {0: 0}}})
        self.assertEqual(found[0].version, "Alpha 1.0")

    def test_foreign_settings_do_not_leak(self):
        os.environ["UCX_TLS"] = "tcp"
        self.addCleanup(os.environ.pop, "UCX_TLS")
        library = libraries.Library("a", "A", [], self.folder, "", {"LD_LIBRARY_PATH": "/x"})
        self.assertNotIn("UCX_TLS", library.environment())
        self.assertEqual(library.environment()["LD_LIBRARY_PATH"], "/x")


class Beside(unittest.TestCase):
    def test_hogs_are_where_they_should_be_and_end(self):
        cpu, nice = runner.cpus()[0], min(19, nice_of(0) + 3)
        before = children()
        with beside.hogs(PROGRAMS, [cpu], 2, nice=3):
            for _ in range(6000):  # until both are the program and have pinned themselves
                started = children() - before
                if len(started) == 2 and all(allowed(pid) == {cpu} and nice_of(pid) == nice for pid in started):
                    break
                time.sleep(0.01)
            else:
                self.fail(f"{len(started)} hogs, on CPUs {[allowed(pid) for pid in started]}")
        self.assertEqual(children() - before, set())

    def test_a_dead_hog_is_told(self):
        with self.assertRaisesRegex(beside.Refused, "a hog ended"):
            with beside.hogs(PROGRAMS, [runner.cpus()[0]]):
                for pid in children():
                    os.kill(pid, signal.SIGKILL)
                    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    def test_the_second_job_lasts_as_long_as_the_first(self):
        with tempfile.TemporaryDirectory() as scratch:
            library = fake_library(pathlib.Path(scratch), "a", "Alpha", "echo '{}'; exec sleep 600\n")
            with beside.second_job(library, 2, ["busy"], None):
                pass
            short = fake_library(pathlib.Path(scratch), "a", "Alpha", "echo '{}'; exit 4\n")
            with self.assertRaisesRegex(runner.Broken, "ended early, with status 4"):
                with beside.second_job(short, 2, ["busy"], None) as job:
                    job.wait(60)

    def test_a_quota_limits_or_is_refused(self):
        try:
            with beside.group(50, 2) as procs:
                self.assertTrue(procs.exists())
                folder = procs.parent
        except beside.Refused as why:
            self.assertIn("control group", str(why))
        else:
            self.assertFalse(folder.exists())

    def test_hogs_join_a_group(self):
        with beside.common_group() as cgroup:
            with beside.hogs(PROGRAMS, [runner.cpus()[0]], cgroup=cgroup):
                members = len(cgroup.read_text().split()) if cgroup else None
        if members is None:  # for a reason that can be told
            with self.assertRaisesRegex(beside.Refused, "no control group"), beside.group():
                pass
        else:
            self.assertEqual(members, 1)

    def test_collectives_sizes_end_with_the_largest(self):
        self.assertEqual(coll.sizes_of("bcast", (8, 1024), 4), [8, 32, 128, 512, 1024])
        self.assertEqual(coll.sizes_of("bcast", (8, 8), 4), [8])
        self.assertEqual(coll.sizes_of("barrier"), [0])
        self.assertEqual(coll.key("p", 8, "persistent", "scan", 1024), "p 8 persistent scan persistent 1 KiB")

    def test_what_an_ended_run_had_measured_is_kept(self):
        class Launch:
            def run(self, session, rep):
                if rep == 1:
                    raise KeyboardInterrupt
                session.add(rep, "weft", coll.key("coll", 2, "blocking", "barrier", 0), 1.5)

        with tempfile.TemporaryDirectory() as out, mock.patch.object(coll, "launch", lambda *_: Launch()), \
                mock.patch.object(coll, "libraries"), contextlib.redirect_stdout(io.StringIO()), self.assertRaises(KeyboardInterrupt):
            coll.libraries.compared.return_value = []
            try:
                coll.run(".", None, [2], ["blocking"], ["barrier"], (8, 8), 4, 3, out, False)
            finally:
                kept = json.loads((pathlib.Path(out) / "coll.json").read_text())
                self.assertEqual(kept["data"]["2"]["blocking"]["barrier"]["0"], {"weft": [1.5]})

    def test_jobs_of_threads(self):
        self.assertEqual(threads.job("everywhere", 4), (8, ["--threads", 1, "--level", "single"]))
        self.assertEqual(threads.job("serial", 4), (2, ["--threads", 4, "--share", 4]))
        self.assertEqual(threads.job("parallel+lanes", 4), (2, ["--threads", 4, "--share", 1, "--hints"]))
        self.assertEqual(threads.job("share 2", 4), (2, ["--threads", 4, "--share", "2"]))
        self.assertEqual(threads.job("busy 10", 4), (2, ["--threads", 4, "--share", 1, "--busy", "10"]))
        self.assertEqual([m for m in ("serial", "share 2", "share", "busy x", "parallel+hints") if not threads.known(m)],
                         ["share", "busy x", "parallel+hints"])

    def test_conditions_say_what_they_are(self):
        self.assertEqual(str(busy.Condition(2, 0, 5, 1, 0)), "2 ranks, no hogs")
        self.assertEqual(str(busy.Condition(8, 2, 5, 2, 50)),
                         "8 ranks, 2 hogs on each CPU, nice 5, two jobs side by side, a quota of 50 %")

    def test_two_ranks_alone_and_pairs_have_programs_of_their_own(self):
        self.assertEqual([sweep.program("latency", n) for n in (2, 8)], ["latency", "pingpong"])
        self.assertEqual(sweep.key("small", "bandwidth", 8, 4096), "small 8 bandwidth stream 4 KiB")


def children():
    return set(map(int, pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def allowed(pid):
    return os.sched_getaffinity(pid)


def nice_of(pid):
    return os.getpriority(os.PRIO_PROCESS, pid)


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

    def test_locks_are_exact_and_threads_cost_little(self):
        row = next(r for r in weft_count.ROWS if r.locks == 1 and r.wire == "null")
        single = {"count": 80, "atomic": 0}
        self.assertEqual(weft_count.said_of_threads(row, {"count": 86, "atomic": 1}, single), [])
        self.assertEqual(weft_count.said_of_threads(row, {"count": 87, "atomic": 1}, single), ["7 MORE for threads"])
        self.assertEqual(weft_count.said_of_threads(row, {"count": 80, "atomic": 2}, single), ["2 LOCKS, not 1"])
        self.assertEqual(weft_count.said_of_threads(row, {"count": 80, "atomic": 0}, single), ["0 LOCKS, not 1"])

    def test_growth_with_depth_is_seen(self):
        row = next(r for r in weft_count.ROWS if r.near)
        self.assertEqual(weft_count.verdict(row, "default", {"count": 106}, None, 100), ("new, GREW with depth from 100", True))
        self.assertFalse(weft_count.verdict(row, "default", {"count": 105}, None, 100)[1])
        self.assertTrue(all(any(r.what == row.near for r in weft_count.ROWS) for row in weft_count.ROWS if row.near))

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

    def test_every_repetition_is_reported(self):
        cpus = ",".join(map(str, runner.cpus()))
        for args in (["ring", "-n", "5"], ["pingpong"], ["socket"], ["barrier", "-n", "5"]):
            status, out = self.run_plain(*args, "--hops", "500", "-r", "3", "--cpus", cpus)
            self.assertEqual(status, 0)
            line = json.loads(out)
            self.assertEqual(len(line["samples"]), 3)
            self.assertTrue(all(0 < v < 1e6 for v in line["samples"]))

    def test_the_socket_wire_is_measured_beside_bare_sockets(self):
        cpus = ",".join(map(str, (runner.cpus() * 2)[:2]))
        done = subprocess.run([str(PROGRAMS / "weft-bench-sock"), "--hops", "500", "-r", "3", "--cpus", cpus],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line["test"]: line["samples"] for line in map(json.loads, done.stdout.splitlines())}
        self.assertEqual({test: len(samples) for test, samples in lines.items()}, {"socket": 3, "wire/sock": 3})
        self.assertTrue(all(0 < v < 1e6 for samples in lines.values() for v in samples))

    def test_bad_arguments_are_refused(self):
        for args in ([], ["nonsense"], ["ring", "-n", "1"], ["ring", "-n", "8", "--hops", "2"]):
            self.assertEqual(self.run_plain(*args)[0], 2)


class Cells(unittest.TestCase):
    def run_cells(self, *args):
        done = subprocess.run([str(PROGRAMS / "weft-bench-cells"), *args], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def test_every_layout_carries_checked_messages_of_every_size(self):
        status, out, err = self.run_cells("-r", "2", "-n", "64", "--csv")
        self.assertEqual((status, err), (0, ""))
        rows = list(csv.DictReader(out.splitlines()))
        sizes = {}
        for row in rows:
            self.assertTrue(0 < float(row["least"]) <= float(row["median"]) <= float(row["most"]), row)
            sizes.setdefault((row["test"], row["variant"]), []).append(int(row["bytes"]))
        spanning = [8 << k for k in range(10)]
        for (_, variant), found in sizes.items():
            self.assertEqual(found, [8] if variant.startswith("packed") else spanning, variant)
        layouts = {variant.split(",")[0].split(" of ")[0] for _, variant in sizes}
        self.assertEqual(layouts, {"line+bulk", "lines", "first last", "one word", "pool", "packed"})

    def test_sizes_between_and_work(self):
        self.assertEqual(self.run_cells("-m", "41:2700", "-r", "1", "-n", "64", "--work", "5")[0], 0)

    def test_a_spoilt_byte_is_found_in_every_layout(self):
        for layout in ("line+bulk", "lines, 64", "first last", "one word", "pool of 16", "packed, 4", "packed, 6"):
            status, out, err = self.run_cells("-m", "8:8" if "packed" in layout else "64:64", "-v", layout, "--corrupt")
            self.assertEqual((status, out), (1, ""))
            self.assertIn("wrong contents", err)

    def test_bad_arguments_are_refused(self):
        for args in (["nonsense"], ["-m", "4:8"], ["-m", "8:8192"], ["-m", "16:16", "-v", "packed"], ["-r", "0"]):
            self.assertEqual(self.run_cells(*args)[0], 2)


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
