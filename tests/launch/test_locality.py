"""Where ranks are put on machines that hwloc is told of, and what each rank knows of its locality."""
import os
import re
import subprocess
import unittest

import harness
from harness import PROBE, LaunchTest, clean_environment

# 2 packages, each with a NUMA node, 2 L3 caches of 2 cores of 2 threads: 16 CPUs.
BIG = "pack:2 [numa] l3:2 core:2 pu:2"
SPREAD, ABSENT = -1, -2


def cpu_set(text):
    return {c for part in text.split(",") for c in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}


class Described(LaunchTest):
    def cpus(self, ranks, *options, machine=BIG):
        """What mpiexec reports for each rank, the same with --dry-run and with a job."""
        env = {"HWLOC_SYNTHETIC": machine}
        dry = self.good("-n", ranks, "--dry-run", *options, "true", env=env)
        real = self.good("-n", ranks, "--report-bindings", *options, "true", env=env)
        found = re.findall(r"rank (\d+): (?:placed, but not bound, on|not bound, may use) CPUs? ([\d,-]+)", real.err)
        self.assertEqual(found, re.findall(r"rank (\d+): (?:placed, but not bound, on|not bound, may use) CPUs? ([\d,-]+)", dry.err))
        self.assertEqual([int(rank) for rank, _ in found], list(range(ranks)), real)
        return [text for _, text in found]

    def test_equal_shares(self):
        self.assertEqual(self.cpus(2), ["0-7", "8-15"])
        self.assertEqual(self.cpus(5), ["0-2", "3-5", "6-8", "9-11", "12-14"])
        self.assertEqual(self.cpus(17), ["0-15"] * 17)

    def test_every_kind(self):
        self.assertEqual(self.cpus(3, "--bind-to", "socket"), ["0-7", "8-15", "0-7"])
        self.assertEqual(self.cpus(3, "--bind-to", "numa"), ["0-7", "8-15", "0-7"])
        self.assertEqual(self.cpus(3, "--bind-to", "core"), ["0-1", "2-3", "4-5"])
        self.assertEqual(self.cpus(3, "--bind-to", "hwthread"), ["0", "1", "2"])
        self.assertEqual(self.cpus(3, "--bind-to", "none"), ["0-15"] * 3)
        self.assertEqual(self.cpus(3, "--bind-to", "core:3"), ["0-5", "6-11", "0-1,12-15"])
        self.assertEqual(self.cpus(9, "--bind-to", "core")[7:], ["14-15", "0-1"])

    def test_map_by(self):
        self.assertEqual(self.cpus(4, "--map-by", "socket"), ["0-7", "8-15", "0-7", "8-15"])
        self.assertEqual(self.cpus(4, "--map-by", "socket", "--bind-to", "core"), ["0-1", "8-9", "2-3", "10-11"])
        self.assertEqual(self.cpus(4, "--map-by", "core", "--bind-to", "hwthread"), ["0", "2", "4", "6"])
        self.assertEqual(self.cpus(10, "--map-by", "core", "--bind-to", "hwthread")[8:], ["1", "3"])

    def test_numa_nodes_within_a_package(self):
        machine = "pack:2 numa:2 core:2 pu:1"
        self.assertEqual(self.cpus(4, "--bind-to", "numa", machine=machine), ["0-1", "2-3", "4-5", "6-7"])
        self.assertEqual(self.cpus(4, "--bind-to", "core", "--map-by", "numa", machine=machine), ["0", "2", "4", "6"])
        self.assertEqual(self.cpus(2, "--bind-to", "socket", machine=machine), ["0-3", "4-7"])

    def test_two_memories_beside_the_same_cpus_are_one_place(self):
        self.assertEqual(self.cpus(3, "--bind-to", "numa", machine="pack:2 [numa] [numa] core:2 pu:1"), ["0-1", "2-3", "0-1"])

    def test_numbers_that_interleave(self):
        machine = "pack:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)"
        self.assertEqual(self.cpus(2, machine=machine), ["0-1,4-5", "2-3,6-7"])
        self.assertEqual(self.cpus(2, "--bind-to", "core", machine=machine), ["0,4", "1,5"])

    def test_what_a_machine_lacks(self):
        self.assertEqual(self.cpus(2, "--bind-to", "core", machine="pu:4"), ["0", "1"])
        self.assertEqual(self.cpus(2, "--bind-to", "socket", machine="pu:4"), ["0-3", "0-3"])

    def test_a_description_that_cannot_be_read(self):
        for name, text in (("HWLOC_SYNTHETIC", "pack:2 moon:x"), ("HWLOC_XMLFILE", "/no/such/file")):
            r = self.good("-n", 1, "true", env={name: text})
            self.assertIn(f"hwloc cannot read {name}={text}; taking the machine as it is", r.err)

    def test_nobody_is_bound_to_cpus_that_are_not_there(self):
        show = ("sh", "-c", "taskset -cp $$")
        r = self.good("-n", 2, "--bind-to", "core", *show, env={"HWLOC_SYNTHETIC": BIG})
        sets = [cpu_set(line.split(": ")[1]) for line in r.out.splitlines()]
        self.assertEqual(sets, [os.sched_getaffinity(0)] * 2)


class Told(LaunchTest):
    def localities(self, ranks, *options, **how):
        """(package, NUMA node, L3 cache, core, thread) of each rank, by their lowest CPUs; every rank must say the same."""
        r = self.good("-n", ranks, *options, PROBE, "attach", "locality", "finalize", **how)
        told = [tuple(map(int, line.split()[1:])) for line in r.out.splitlines() if line.startswith("locality")]
        self.assertEqual(len(told), ranks * ranks, r)
        for locality in told:
            self.assertEqual(told.count(locality) % ranks, 0, r)
        return sorted(set(told))

    def test_every_rank_knows_every_locality(self):
        env = {"HWLOC_SYNTHETIC": BIG}
        for rank in range(3):
            r = self.good("-n", 3, "--bind-to", "core", "--map-by", "socket", PROBE, "attach", f"@{rank}:locality", "finalize", env=env)
            told = [line for line in r.out.splitlines() if line.startswith("locality")]
            self.assertEqual(told, ["locality 0 0 0 0 -1", "locality 8 8 8 8 -1", "locality 0 0 0 2 -1"])

    def test_levels(self):
        env = {"HWLOC_SYNTHETIC": BIG}
        self.assertEqual(self.localities(2, "--bind-to", "socket", env=env), [(0, 0, SPREAD, SPREAD, SPREAD), (8, 8, SPREAD, SPREAD, SPREAD)])
        self.assertEqual(self.localities(4, env=env), [(0, 0, 0, SPREAD, SPREAD), (0, 0, 4, SPREAD, SPREAD),
                                                   (8, 8, 8, SPREAD, SPREAD), (8, 8, 12, SPREAD, SPREAD)])
        self.assertEqual(self.localities(2, "--bind-to", "hwthread", env=env), [(0, 0, 0, 0, 0), (0, 0, 0, 0, 1)])
        self.assertEqual(self.localities(2, "--bind-to", "none", env=env), [(SPREAD,) * 5])
        self.assertEqual(self.localities(1, env={"HWLOC_SYNTHETIC": "numa:2 core:2 pu:1"}), [(ABSENT, SPREAD, ABSENT, SPREAD, SPREAD)])

    def test_again_after_a_session(self):
        r = self.good("-n", 2, PROBE, "attach", "finalize", "detach", "attach", "locality", "finalize", env={"HWLOC_SYNTHETIC": BIG})
        self.assertEqual(r.out.count("locality 0 0 -1 -1 -1\n"), 2, r)
        self.assertEqual(r.out.count("locality 8 8 -1 -1 -1\n"), 2, r)

    def test_alone_the_kernel_says_the_same(self):
        for cpus in ({min(os.sched_getaffinity(0))}, {max(os.sched_getaffinity(0))}, os.sched_getaffinity(0)):
            confine = lambda: os.sched_setaffinity(0, cpus)
            alone = subprocess.run([PROBE, "attach", "locality"], env=clean_environment(), capture_output=True, text=True, preexec_fn=confine,
                                   timeout=harness.DEADLINE)
            told = [tuple(map(int, line.split()[1:])) for line in alone.stdout.splitlines() if line.startswith("locality")]
            self.assertEqual(told, self.localities(1, preexec_fn=confine), cpus)
            self.assertNotEqual(told[0][4], ABSENT)

    def test_bound_by_the_real_machine(self):
        last = max(os.sched_getaffinity(0))
        for locality in self.localities(1, "--bind-to", "hwthread", preexec_fn=lambda: os.sched_setaffinity(0, {last})):
            self.assertEqual(locality[4], last)

    def test_plugins_stay_as_they_were(self):
        show = ("sh", "-c", "echo ${HWLOC_PLUGINS_PATH-unset}")
        self.assertEqual(self.good("-n", 1, *show).out, "unset\n")
        self.assertEqual(self.good("-n", 1, *show, env={"HWLOC_PLUGINS_PATH": "/some/where"}).out, "/some/where\n")


if __name__ == "__main__":
    harness.main()
