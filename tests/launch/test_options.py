"""The command line of mpiexec: options, sections, environment, placement."""
import os
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import MPIEXEC, PROBE, LaunchTest, needs_vfork

RANKS = ("sh", "-c", "echo $WEFT_RANK/$WEFT_SIZE")


class Ranks(LaunchTest):
    def ranks(self, *options, program=RANKS):
        r = self.good(*options, *program)
        return sorted(r.out.split())

    def test_number(self):
        for options in (("-n", 3), ("--n", 3), ("-np", 3), ("--np", 3), ("-np=3",), ("-n", 5, "-soft", "1:3"), ("-ppn", 3)):
            with self.subTest(options):
                self.assertEqual(self.ranks(*options), ["0/3", "1/3", "2/3"])
        self.assertEqual(self.ranks(), ["0/1"])

    def test_soft(self):
        for soft, most, expected in (("2:10:4", 9, 6), ("1,2,4,8", 7, 4), ("3", 5, 3), ("9:1:-3", 5, 3)):
            with self.subTest(soft):
                self.assertEqual(len(self.ranks("-n", most, "-soft", soft)), expected)
        self.assertEqual(self.run_job("-n", 2, "-soft", "5:9", "true").status, 2)

    def test_sections(self):
        r = self.good("-n", 1, "echo", "a", ":", "-n", 2, "echo", "b", ":", "echo", "c")
        self.assertEqual(sorted(r.out.split()), ["a", "b", "b", "c"])

    def test_hosts(self):
        here = socket.gethostname()
        for options in (("-host", f"{here}:2"), ("-hosts", "localhost,localhost"), ("-H", "127.0.0.1:2"),
                        ("-host", f"{here.split('.')[0]}:2")):
            with self.subTest(options):
                self.assertEqual(len(self.ranks(*options)), 2)
        self.assertEqual(len(self.ranks("-host", "localhost", "-n", 3)), 3)
        r = self.run_job("-host", "elsewhere.example.org", "-n", 2, "true")
        self.assertEqual(r.status, 2)
        self.assertIn("elsewhere.example.org is not this machine", r.err)

    def test_hostfile(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("# two ways to say it\nlocalhost slots=2\n\nlocalhost:1  # one more\n")
            f.flush()
            for option in ("-hostfile", "-f", "--machinefile"):
                self.assertEqual(len(self.ranks(option, f.name)), 3)
        for text, said in (("# nothing\n", "names no host"), ("localhost slots=none\n", "slots=none: expected a number"),
                           ("localhost\nelsewhere.example.org\n", "elsewhere.example.org is not this machine")):
            with tempfile.NamedTemporaryFile("w") as f:
                f.write(text)
                f.flush()
                r = self.run_job("-hostfile", f.name, "true")
                self.assertEqual(r.status, 2)
                self.assertIn(said, r.err)
        self.assertIn('-host "" names no host', self.run_job("-host", "", "true").err)
        r = self.run_job("-hostfile", "/no/such/file", "true")
        self.assertEqual(r.status, 2)
        self.assertIn("/no/such/file: No such file", r.err)

    def test_batch_allocation(self):
        one = {"SLURM_NTASKS": "3", "SLURM_JOB_NUM_NODES": "1"}
        self.assertEqual(len(self.good(*RANKS, env=one).out.split()), 3)
        self.assertEqual(len(self.good("-n", 2, *RANKS, env=one).out.split()), 2)
        r = self.good(*RANKS, env={"SLURM_NTASKS": "8", "SLURM_JOB_NUM_NODES": "2"})
        self.assertEqual(r.out, "0/1\n")
        self.assertIn("the allocation has 2 nodes", r.err)

    def test_configfile(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("# a job\n-n 2 echo 'two  words' # with a comment\n\n-n 1 \\\n  echo three\\ more \"quoted # sign\"\n")
            f.flush()
            r = self.good("-configfile", f.name)
            self.assertEqual(sorted(r.out.splitlines()), ["three more quoted # sign", "two  words", "two  words"])
            r = self.good("-l", "-configfile", f.name)
            self.assertEqual(sorted(r.out.splitlines())[0], "[0] two  words")
        self.assertEqual(self.run_job("-configfile", "/no/such/file").status, 2)


class Environment(LaunchTest):
    def value(self, *options, name="PROBE_V", env=None):
        r = self.good(*options, "sh", "-c", f'echo "<${name}>"', env=env)
        return r.out.strip()[1:-1]

    def test_setting(self):
        self.assertEqual(self.value("-env", "PROBE_V", "a b"), "a b")
        self.assertEqual(self.value("-genv", "PROBE_V", "a b"), "a b")
        self.assertEqual(self.value("-x", "PROBE_V=c=d"), "c=d")
        self.assertEqual(self.value("-genv", "PROBE_V", "all", "-env", "PROBE_V", "mine"), "mine")

    def test_passing(self):
        self.assertEqual(self.value(env={"PROBE_V": "inherited"}), "inherited")
        self.assertEqual(self.value("-x", "PROBE_V", env={"PROBE_V": "inherited"}), "inherited")
        self.assertEqual(self.value("-genvlist", "PATH", env={"PROBE_V": "inherited"}), "")
        self.assertEqual(self.value("-genvlist", "PATH,PROBE_V", env={"PROBE_V": "inherited"}), "inherited")
        self.assertEqual(self.value("-genvnone", "-x", "PATH=/usr/bin:/bin", env={"PROBE_V": "inherited"}), "")

    def test_sections_differ(self):
        show = ("sh", "-c", 'echo "$WEFT_RANK:$PROBE_V:$PROBE_G"')
        r = self.good("-n", 1, "-genv", "PROBE_G", "g", "-env", "PROBE_V", "one", *show, ":", "-n", 1, *show)
        self.assertEqual(sorted(r.out.split()), ["0:one:g", "1::g"])

    def test_directory(self):
        for option in ("-wdir", "--wdir", "-wd", "--wd"):
            self.assertEqual(self.good(option, "/usr", "pwd").out, "/usr\n")

    @needs_vfork
    def test_no_such_directory(self):
        r = self.run_job("-wdir", "/no/such/dir", "pwd")
        self.assertNotEqual(r.status, 0)
        self.assertIn("/no/such/dir", r.err)
        self.assertIn("No such file or directory (errno 2)", r.err)

    def test_path(self):
        with tempfile.TemporaryDirectory() as d:
            program = os.path.join(d, "only-here")
            with open(program, "w") as f:
                f.write("echo found\n")  # without #!: run by sh, as shells do
            os.chmod(program, 0o755)
            self.assertEqual(self.good("-path", d, "only-here").out, "found\n")
            self.assertEqual(self.good("-wdir", d, "./only-here").out, "found\n")
            self.assertEqual(self.run_job("only-here").status, 127)


class Words(LaunchTest):
    def test_unknown_option_names_the_nearest(self):
        for wrong, near in (("-nn", "-n"), ("--timestamp-ouput", "-timestamp-output"), ("--bind_to", "-bind-to"),
                            ("-verbos", "-verbose"), ("--hostfiles", "-hostfile")):
            with self.subTest(wrong):
                r = self.run_job(wrong, "true")
                self.assertEqual(r.status, 2)
                self.assertIn(f"unknown option {wrong}; the nearest known one is {near} ", r.err)
        for wrong in ("-zzz", "-q", "-w", "--frobnicate", "--pernode-list", "-xyzzy", "-machine"):
            with self.subTest(wrong):
                r = self.run_job(wrong, "true")
                self.assertEqual((r.status, r.err), (2, f"mpiexec: unknown option {wrong} (mpiexec -h lists all)\n"))

    def test_mca_is_skipped(self):
        r = self.good("--mca", "pml", "ucx", "-n", 2, "-mca", "btl", "self", *RANKS)
        self.assertEqual(len(r.out.split()), 2)
        self.assertEqual(r.err.count("warning: --mca"), 2)
        self.assertIn("--mca pml ucx", r.err)

    def test_order_and_display(self):
        for option in (("--map-by", "slot"), ("--map-by", "node"), ("--rank-by", "slot")):
            r = self.good(*option, "-n", 2, *RANKS)
            self.assertEqual((sorted(r.out.split()), r.err), (["0/2", "1/2"], ""))
        self.assertEqual(len(self.good("--map-by", "ppr:3:node", *RANKS).out.split()), 3)
        r = self.good("--display", "map,bind", "-n", 2, "true")
        self.assertIn("rank 1 on ", r.err)
        self.assertRegex(r.err, r"rank 1: (bound to|not bound)")
        for wrong in (("--map-by", "ppr:x:node"), ("--map-by", "ppr:2:core"), ("--rank-by", "core"), ("--display", "all")):
            with self.subTest(wrong):
                r = self.run_job(*wrong, "-n", 2, "true")
                self.assertEqual(r.status, 2)
                self.assertIn("expected", r.err)

    def test_what_is_for_other_machines_is_skipped(self):
        for option in ("-launcher", "-bootstrap", "-rmk", "-iface", "-launcher-exec"):
            r = self.good(option, "ssh", "-n", 2, *RANKS)
            self.assertEqual(len(r.out.split()), 2)
            self.assertIn('warning: "ssh" chooses how other machines are reached', r.err)

    def test_one_dash_or_two(self):
        """Every option that the usage names is known in both forms."""
        help_text = self.good("-h").out
        names = {word.rstrip(",")[1:] for line in help_text.splitlines() if line.startswith("  -")
                 for word in line.split("  ")[1].split() if word.startswith("-")}
        self.assertGreater(len(names), 40)
        ends = {"h", "help", "version", "V"}
        for name in sorted(names - ends):
            for dashes in ("-", "--"):
                with self.subTest(dashes + name):
                    r = self.run_job(dashes + name)  # without arguments or program: an error, but not that it is unknown
                    self.assertEqual(r.status, 2, r)
                    self.assertNotIn("unknown option", r.err)

    def test_accepted_quietly(self):
        r = self.good("--oversubscribe", "--allow-run-as-root", "-memory-alloc-kinds", "mpi,system", "-initial-errhandler",
                      "mpi_errors_return", PROBE, "attach", "info=mpi_initial_errhandler", "info=mpi_memory_alloc_kinds",
                      "finalize")
        self.assertEqual(r.err, "")
        self.assertIn("mpi_initial_errhandler=mpi_errors_return\nmpi_memory_alloc_kinds=mpi,system\n", r.out)
        self.assertEqual(self.run_job("-initial-errhandler", "whatever", "true").status, 2)

    def test_wrong_use(self):
        for words, text in ((("-n", "x", "true"), "-n x: expected a number"), (("-n", "0", "true"), "expected a number"),
                            (("-n", "2"), "no program"), ((), "no program"), (("-n",), "-n needs N"),
                            (("-env", "A"), "needs NAME VALUE"), (("true", ":"), "no program"),
                            (("-n", "1", ":", "true"), "no program"), (("--bind-to", "moon", "true"), "expected none")):
            with self.subTest(words):
                r = self.run_job(*words)
                self.assertEqual(r.status, 2, r)
                self.assertIn(text, r.err)
                self.assertEqual(r.err.count("\n"), 1)

    def test_help_and_version(self):
        for word in ("-h", "-help", "--help"):
            r = self.good(word)
            self.assertIn("Usage: mpiexec", r.out)
            self.assertIn("-bind-to", r.out)
            self.assertLessEqual(max(map(len, r.out.splitlines())), 160)
        for word in ("-V", "-version", "--version"):
            self.assertRegex(self.good(word).out, r"^mpiexec \(Weft\) \d+\.\d+")

    def test_examples_of_the_manual_page(self):
        page = self.good("--man").out.replace("\\-", "-")
        examples = [line[len(".B mpiexec "):] for line in page.split(".SH EXAMPLES\n")[1].splitlines() if line.startswith(".B mpiexec ")]
        self.assertGreaterEqual(len(examples), 10)
        for example in examples:
            with self.subTest(example):
                r = self.good("--dry-run", *example.split())
                self.assertRegex(r.err, r"mpiexec: rank 0 on \S+: .*\./(program|master)")

    def test_verbose_and_dry_run(self):
        r = self.good("-v", "-n", 2, "echo", "x")
        self.assertIn("rank 1 on", r.err)
        self.assertEqual(r.out, "x\nx\n")
        r = self.good("--dry-run", "-n", 2, "echo", "x", ":", "touch", "/no/such/dir/file")
        self.assertEqual(r.out, "")
        self.assertIn("rank 2 on", r.err)
        self.assertIn("touch /no/such/dir/file", r.err)

    def test_all_exit_codes(self):
        r = self.run_job("-print-all-exitcodes", "-n", 2, "sh", "-c", "exit $WEFT_RANK")
        self.assertIn("rank 0: exit status 0\n", r.err)
        self.assertIn("rank 1: exit status 1\n", r.err)


def quota_group():
    """A control group that may use one CPU's worth of time; None where it cannot be made."""
    for mount, name, text in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"), ("/sys/fs/cgroup", "cpu.max", "100000 100000")):
        group = f"{mount}/weft-test-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/{name}", "w") as f:
                f.write(text)
            return group
        except OSError:
            os.rmdir(group)
    return None


def usable_cpus():
    allowed = len(os.sched_getaffinity(0))
    try:
        with open("/sys/fs/cgroup/cpu.max") as f:
            quota, period = f.read().split()
        return allowed if quota == "max" else min(allowed, int(quota) // int(period))
    except (OSError, ValueError):
        return allowed


class Placement(LaunchTest):
    def cpus(self, *options, ranks=2, on=None, enter=None):
        """The CPUs each rank may use, mpiexec itself confined to `on`."""
        show = ("sh", "-c", 'echo "$WEFT_RANK $(taskset -cp $$ | sed "s/.*: //")"')
        confine = (lambda: os.sched_setaffinity(0, on)) if on else enter
        r = self.good("-n", ranks, *options, *show, preexec_fn=confine)
        found = {}
        for line in r.out.splitlines():
            rank, text = line.split()
            found[int(rank)] = {c for part in text.split(",")
                                for c in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
        return [found[i] for i in range(ranks)]

    @unittest.skipIf(usable_cpus() < 2, "one CPU's worth of time alone")
    def test_default_is_disjoint_equal_shares(self):
        allowed = os.sched_getaffinity(0)
        a, b = self.cpus()
        self.assertFalse(a & b)
        self.assertEqual(len(a), len(b))
        self.assertLessEqual(a | b, allowed)
        self.assertGreaterEqual(len(a | b), len(allowed) - 1)

    def test_more_ranks_than_cpus_are_not_bound(self):
        one = {min(os.sched_getaffinity(0))}
        self.assertEqual(self.cpus(ranks=3, on=one), [one] * 3)
        allowed = os.sched_getaffinity(0)
        ranks = len(allowed) + 1
        self.assertEqual(self.cpus(ranks=ranks), [allowed] * ranks)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU alone")
    def test_quota_below_the_ranks_means_no_binding(self):
        group = quota_group()
        if not group:
            self.skipTest("no right to make a control group with a CPU quota")
        self.addCleanup(os.rmdir, group)
        allowed = os.sched_getaffinity(0)

        def enter():
            with open(f"{group}/cgroup.procs", "w") as f:
                f.write("0")
        r = self.good("-n", 1, PROBE, "attach", "finalize", preexec_fn=enter)
        self.assertIn(f" cpus={len(allowed)} ", r.out)  # ranks run side by side until the quota is spent
        self.assertEqual(self.cpus(enter=enter), [allowed] * 2)

    def test_one_rank_has_all(self):
        self.assertEqual(self.cpus(ranks=1), [os.sched_getaffinity(0)])

    def test_none(self):
        self.assertEqual(self.cpus("--bind-to", "none"), [os.sched_getaffinity(0)] * 2)

    def test_hwthread(self):
        allowed = sorted(os.sched_getaffinity(0))
        sets = self.cpus("--bind-to", "hwthread", ranks=len(allowed))
        self.assertEqual(sorted(min(s) for s in sets), allowed)
        self.assertEqual({len(s) for s in sets}, {1})
        self.assertEqual(len(self.cpus("--bind-to", "hwthread:2", ranks=1)[0]), min(2, len(allowed)))

    def test_partial_set_is_respected(self):
        last = {max(os.sched_getaffinity(0))}
        for what in ("core", "numa", "socket", "hwthread"):
            with self.subTest(what):
                self.assertEqual(self.cpus("--bind-to", what, ranks=1, on=last), [last])

    def test_map_by(self):
        sets = self.cpus("--map-by", "core", "--bind-to", "core")
        for s in sets:
            self.assertLessEqual(s, os.sched_getaffinity(0))

    def test_report(self):
        r = self.good("-n", 2, "--report-bindings", "--bind-to", "core", "true")
        self.assertRegex(r.err, r"rank 0: bound to CPUs? [\d,-]+\n")
        self.assertIn("rank 1: ", r.err)
        r = self.good("-n", 2, "--report-bindings", "--bind-to", "none", "true")
        self.assertIn("rank 0: not bound", r.err)


if __name__ == "__main__":
    harness.main()
