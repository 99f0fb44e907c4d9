"""How jobs end: exit statuses, failures of ranks, signals, the death of mpiexec itself."""
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import MPIEXEC, PROBE, LaunchTest, clean_environment, needs_vfork, wait_until

STAY = ("attach", "barrier", "sleep=300")
OUR_SLEEP = f"300.{os.getpid()}"


def sleepers():
    """Processes that only this test starts: some of those carry no mark in their environment."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as f:
                if f.read() == f"sleep\x00{OUR_SLEEP}\x00".encode() and harness.state(entry) not in "ZX":
                    found.add(entry)
        except OSError:
            continue
    return found


class ExitStatus(LaunchTest):
    def test_all_well(self):
        r = self.good("-n", 3, PROBE, "attach", "barrier", "finalize")
        self.assertEqual(r.err, "", r)
        self.assertEqual(sorted(line.split()[0] for line in r.out.splitlines()), ["rank=0", "rank=1", "rank=2"], r)

    def test_largest_of_the_ranks(self):
        r = self.run_job("-n", 4, "sh", "-c", "exit $((WEFT_RANK * 10))")
        self.assertEqual(r.status, 30, r)
        self.assertEqual(r.err, "", r)

    def test_after_finalize_a_status_is_the_ranks_own_business(self):
        r = self.run_job("-n", 3, PROBE, "attach", "barrier", "finalize", "@1:exit=7", "sleep=0.3", "say=done")
        self.assertEqual(r.status, 7, r)
        self.assertEqual(r.out.count("done"), 2, r)
        self.assertEqual(r.err, "", r)

    def test_plain_programs(self):
        r = self.good("-n", 4, "echo", "hello")
        self.assertEqual(r.out, "hello\n" * 4)

    @needs_vfork
    def test_cannot_execute(self):
        r = self.run_job("-n", 2, "./no-such-program")
        self.assertEqual(r.status, 127, r)
        self.assertIn("./no-such-program", r.err)
        self.assertIn("No such file or directory (errno 2)", r.err)
        self.assertEqual(r.err.count("\n"), 1, r)

    @needs_vfork
    def test_not_executable(self):
        r = self.run_job("-n", 1, "/etc/passwd")
        self.assertEqual(r.status, 126, r)
        self.assertIn("Permission denied", r.err)

    @needs_vfork
    def test_what_is_wrong_with_a_program(self):
        with tempfile.TemporaryDirectory() as d:
            for name, text, mode in (("data", "", 0o644), ("script", "#!/no/such/shell\n", 0o755)):
                path = os.path.join(d, name)
                with open(path, "w") as f:
                    f.write(text)
                os.chmod(path, mode)
            for program, status, why in ((d, 126, f"{d} (a directory)"), (f"{d}/data", 126, f"{d}/data (it is not executable)"),
                                         (f"{d}/script", 127, f"{d}/script (or what its first line asks for)"),
                                         ("no-such-program", 127, "no-such-program (it is neither in PATH nor in the directory)")):
                with self.subTest(why):
                    r = self.run_job("-n", 2, program)
                    self.assertEqual(r.status, status, r)
                    self.assertIn(f"cannot run {why} on ", r.err)
            r = self.run_job("-n", 1, "-wdir", d, "data")
            self.assertIn("data (it is not executable)", r.err)

    def test_one_program_of_two_is_missing(self):
        r = self.run_job("-n", 1, "sleep", "300", ":", "-n", 1, "no-such-program-either")
        self.assertEqual(r.status, 127, r)


class Failures(LaunchTest):
    def test_killed_rank_ends_the_job(self):
        for number, name in ((9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT")):
            with self.subTest(name):
                r = self.run_job("-n", 3, PROBE, "attach", "barrier", f"@1:kill={number}", "sleep=300")
                self.assertEqual(r.status, 128 + number, r)
                self.assertRegex(r.err, rf"^mpiexec: rank 1 \(pid \d+\) was killed by signal {number} \({name}.*; ending the job\n$")

    def test_exit_without_finalize(self):
        r = self.run_job("-n", 3, PROBE, "attach", "barrier", "@2:exit=0", "sleep=300")
        self.assertEqual(r.status, 1, r)
        self.assertRegex(r.err, r"rank 2 \(pid \d+\) exited with status 0 without calling MPI_Finalize; ending the job\n$")

    def test_exit_with_status_without_finalize(self):
        r = self.run_job("-n", 2, PROBE, "attach", "barrier", "@0:exit=5", "sleep=300")
        self.assertEqual(r.status, 5, r)
        self.assertIn("exited with status 5 without calling MPI_Finalize", r.err)

    def test_rank_never_initialises(self):
        r = self.run_job("-n", 2, PROBE, "@1:exit=0", "attach", "sleep=300")
        self.assertEqual(r.status, 1, r)
        self.assertIn("rank 1", r.err)
        self.assertIn("without calling MPI_Init, and others wait for it", r.err)

    def test_failed_plain_program_ends_the_others(self):
        r = self.run_job("-n", 2, "sh", "-c", "test $WEFT_RANK = 0 && exit 4; sleep 300")
        self.assertEqual(r.status, 4, r)
        self.assertIn("rank 0", r.err)

    def test_nothing_is_left_of_a_job_that_failed(self):
        """Background children of ranks: in the rank's group, in another session, without our environment, holding our output."""
        leave = (f"sleep {OUR_SLEEP} & setsid sleep {OUR_SLEEP} & setsid sh -c 'trap : TERM; while :; do sleep 1; done' & "
                 f"(setsid env -i sleep {OUR_SLEEP} &) ; ")
        for last, options, status in (("exit 3", (), 3), ("exit 3", ("-l",), 3), ("kill -9 $$", (), 137),
                                      (f"exec {PROBE} attach barrier @1:abort=7 sleep=300", ("-l",), 7)):
            with self.subTest(last, options=options):
                before = sleepers()
                job = self.launch("-n", 2, *options, "sh", "-c", leave + last)
                r = job.finish()
                self.assertEqual(r.status, status, r)
                self.assertEqual(job.living(), [])
                self.assertLessEqual(sleepers(), before)

    def test_what_a_good_job_leaves_stays(self):
        job = self.launch("-n", 1, "-l", "sh", "-c", "setsid sleep 300 & echo left")
        self.assertEqual(job.finish().out, "[0] left\n")
        left = job.living()
        self.assertEqual(len(left), 1)
        os.kill(left[0], signal.SIGKILL)

    def test_children_from_before_mpiexec_stay(self):
        script = f"sleep 300 >/dev/null & echo $!; exec {harness.MPIEXEC} -n 1 false"
        r = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, env=clean_environment(), timeout=harness.DEADLINE)
        self.assertEqual(r.returncode, 1)
        os.kill(int(r.stdout), signal.SIGKILL)

    def test_abort(self):
        r = self.run_job("-n", 3, PROBE, "attach", "barrier", "@1:abort=42", "sleep=300")
        self.assertEqual(r.status, 42, r)
        self.assertRegex(r.err, r"^mpiexec: rank 1 \(pid \d+\) called MPI_Abort with code 42: the probe was told to; ending the job\n$")

    def test_an_error_that_ends_the_job_is_no_abort(self):
        r = self.run_job("-n", 3, PROBE, "attach", "barrier", "@1:fail=42", "sleep=300")
        self.assertEqual(r.status, 42, r)
        self.assertRegex(r.err, r"^mpiexec: rank 1 \(pid \d+\) was ended by an MPI error, code 42: MPI_Recv: the probe was told to; ending the job\n$")

    def test_the_killed_rank_is_named_and_not_those_that_noticed(self):
        for last_word in ("abort=3", "exit=4"):
            with self.subTest(last_word):
                r = self.run_job("-n", 3, PROBE, "attach", "barrier", "@0:shoot=1", "@0:" + last_word, "sleep=300")
                self.assertEqual(r.status, 137, r)
                self.assertRegex(r.err, r"^mpiexec: rank 1 \(pid \d+\) was killed by signal 9 .*ending the job\n$")

    def test_abort_after_others_finalized(self):
        r = self.run_job("-n", 2, PROBE, "attach", "barrier", "@0:finalize", "@0:exit=0", "sleep=0.2", "abort=3")
        self.assertEqual(r.status, 3, r)

    def test_limit_of_open_files(self):
        """A soft limit is raised, for mpiexec alone; a hard one that is too low is said before anything starts."""
        def limit(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        r = self.good("-n", 40, "-l", "sh", "-c", "ulimit -Sn", preexec_fn=limit(64, hard))
        self.assertEqual({line.split()[1] for line in r.out.splitlines()}, {"64"})
        r = self.run_job("-n", 40, PROBE, "attach", "finalize", preexec_fn=limit(64, 64))
        self.assertEqual((r.status, r.err), (1, "mpiexec: 40 ranks take 112 open files of mpiexec, and the limit is 64 (ulimit -n)\n"))
        self.good("-n", 40, PROBE, "attach", "finalize", preexec_fn=limit(112, 112))
        self.good("-n", 40, "-l", PROBE, "attach", "finalize", preexec_fn=limit(192, 192))

    def test_limit_of_file_sizes_is_named(self):
        r = self.run_job("-n", 2, "sh", "-c", "kill -XFSZ $$")
        self.assertEqual(r.status, 128 + signal.SIGXFSZ)
        self.assertIn("(ulimit -f)", r.err)

    def test_term_is_tried_first(self):
        with tempfile.TemporaryDirectory() as d:
            r = self.run_job("-n", 2, "sh", "-c", f"if [ $WEFT_RANK = 0 ]; then until [ -e {d}/set ]; do sleep 0.02; done; kill -9 $$; fi; "
                             f"trap 'echo got TERM; exit 0' TERM; touch {d}/set; sleep 300 & wait")
        self.assertEqual(r.status, 137, r)
        self.assertEqual(r.out, "got TERM\n", r)

    def test_deaf_rank_is_killed(self):
        with tempfile.TemporaryDirectory() as d:
            r = self.run_job("-n", 2, "sh", "-c", f"if [ $WEFT_RANK = 0 ]; then until [ -e {d}/set ]; do sleep 0.02; done; kill -11 $$; fi; "
                             f"trap '' TERM; touch {d}/set; sleep 300; sleep 300")
        self.assertEqual(r.status, 139, r)

    def test_failure_under_a_wrapper(self):
        r = self.run_job("-n", 2, "sh", "-c", f"{PROBE} attach barrier @1:kill=9 sleep=300; exit $?")
        self.assertEqual(r.status, 137, r)
        self.assertIn("rank 1", r.err)
        self.assertIn("128 + 9, SIGKILL", r.err)

    def test_wrapper_that_stays(self):
        r = self.run_job("-n", 2, "sh", "-c", f"{PROBE} attach barrier @1:kill=9 sleep=300; sleep 300")
        self.assertEqual(r.status, 1, r)
        self.assertIn("rank 1", r.err)
        self.assertIn("ended without calling MPI_Finalize", r.err)

    def test_time_limit(self):
        for how in ({"args": ("--timeout", 1)}, {"env": {"MPIEXEC_TIMEOUT": "1"}}):
            with self.subTest(how):
                r = self.run_job(*how.get("args", ()), "-n", 2, PROBE, *STAY, env=how.get("env"))
                self.assertEqual(r.status, 124, r)
                self.assertIn("time limit of 1 s", r.err)


class Signals(LaunchTest):
    def up(self, *words, wrapper=None, ranks=2):
        job = self.launch("-n", ranks, *(wrapper or ()), PROBE, *(words or STAY))
        for _ in range(ranks):
            self.assertIn(b"rank=", job.read_line())
        return job

    def test_interrupt_and_terminate(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                job = self.up()
                job.signal(number)
                r = job.finish()
                self.assertEqual(r.status, 128 + number, r)

    def test_python_interrupted(self):
        code = "import os, time; os.write(1, b'up\\n'); time.sleep(300)"
        job = self.launch("-n", 2, sys.executable, "-c", code)
        for _ in range(2):
            self.assertEqual(job.read_line(), b"up\n")
        job.signal(signal.SIGINT)
        r = job.finish()
        self.assertEqual(r.status, 130, r)
        self.assertEqual(r.err.count("KeyboardInterrupt"), 2, r)

    def test_second_interrupt_kills(self):
        job = self.launch("-n", 2, "sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 300; done")
        for _ in range(2):
            self.assertEqual(job.read_line(), b"up\n")
        job.signal(signal.SIGINT)
        with self.assertRaises(subprocess.TimeoutExpired):
            job.process.wait(0.3)
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish().status, 130)

    def test_user_signals_arrive(self):
        job = self.launch("-n", 2, "sh", "-c",
                          "trap 'echo usr1' USR1; trap 'echo usr2; exit 0' USR2; echo up; while :; do sleep 0.02; done")
        for _ in range(2):
            self.assertEqual(job.read_line(), b"up\n")
        job.signal(signal.SIGUSR1)
        for _ in range(2):
            self.assertEqual(job.read_line(), b"usr1\n")
        job.signal(signal.SIGUSR2)
        r = job.finish()
        self.assertEqual((r.status, r.out), (0, "usr2\n" * 2), r)

    def test_ranks_with_a_cpu_each_are_in_sessions_of_their_own(self):
        """The kernel shares CPUs among sessions: ranks in one would have one share for all of them."""
        n = min(2, len(os.sched_getaffinity(0)))
        r = self.run_job("-n", n, "sh", "-c", "cat /proc/$$/stat")
        fields = [line.split() for line in r.out.splitlines()]
        self.assertEqual([(f[4], f[5]) for f in fields], [(f[0], f[0]) for f in fields], r)
        self.assertEqual(len({f[0] for f in fields}), n, r)

    def test_ranks_that_share_cpus_are_in_one_session(self):
        """They yield to each other, which reaches no other session."""
        n = len(os.sched_getaffinity(0)) + 1
        r = self.run_job("-n", n, "sh", "-c", "cat /proc/$$/stat")
        self.assertEqual(len({line.split()[5] for line in r.out.splitlines()}), 1, r)

    def test_stop_and_continue(self):
        job = self.up()
        states = lambda: {harness.state(p) for p in [job.process.pid, *job.living()]}
        job.signal(signal.SIGTSTP)
        wait_until(lambda: states() == {"T"}, "everything stopped")
        job.signal(signal.SIGCONT)
        wait_until(lambda: states() <= {"S", "R"}, "everything running")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().status, 143)

    def test_nohup_is_respected(self):
        job = self.launch("-n", 1, PROBE, *STAY, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertIn(b"rank=", job.read_line())
        job.signal(signal.SIGHUP)
        with self.assertRaises(subprocess.TimeoutExpired):
            job.process.wait(0.3)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().status, 143)


class DeathOfMpiexec(LaunchTest):
    def killed(self, *wrapper, words=STAY, ranks=2):
        job = self.launch("-n", ranks, *wrapper, PROBE, *words)
        for _ in range(ranks):
            self.assertIn(b"rank=", job.read_line())
        self.assertGreaterEqual(len(job.living()), ranks)
        job.process.kill()
        job.process.wait()
        self.assertEqual(harness.wait_gone(job.mark, harness.DEADLINE), [], "ranks outlived mpiexec")

    def test_direct(self):
        self.killed()

    def test_under_a_shell(self):
        job = self.launch("-n", 2, "sh", "-c", f"{PROBE} {' '.join(STAY)}; true")
        for _ in range(2):
            self.assertIn(b"rank=", job.read_line())
        self.assertEqual(len(job.living()), 4)
        job.process.kill()
        job.process.wait()
        self.assertEqual(harness.wait_gone(job.mark, harness.DEADLINE), [], "ranks outlived mpiexec")

    def test_under_a_shell_that_dropped_the_descriptor(self):
        code = ("import subprocess, sys\n"
                "sys.exit(subprocess.run(sys.argv[1:], close_fds=True).returncode)")
        self.killed(sys.executable, "-c", code)

    def test_finalized_ranks_too(self):
        self.killed(words=("attach", "barrier", "finalize", "detach", "sleep=300"))

    @unittest.skipUnless(shutil.which("valgrind") and not harness.SANITIZED, "no valgrind, or built with a sanitizer")
    def test_under_valgrind(self):
        self.killed("valgrind", "-q", "--tool=none", words=("attach", "sleep=300"))

    def test_late_rank_finds_nobody(self):
        job = self.launch("-n", 1, "sh", "-c", f"(sleep 1; {PROBE} attach; echo status $?) & echo started; wait")
        self.assertEqual(job.read_line(), b"started\n")
        job.process.kill()
        out = job.process.stdout.read().decode()
        err = job.process.stderr.read().decode()
        self.assertIn("status 77", out)
        self.assertIn("mpiexec that started this process is gone", err)


class AtRandom(LaunchTest):
    """Kills at points that no test chose; the seed is printed with a failure."""

    def setUp(self):
        self.seed = int(os.environ.get("WEFT_SEED", time.time_ns() % 1_000_000))
        self.random = random.Random(self.seed)

    def victim(self, job, rank):
        """The pid of a rank as soon as it exists, or None when the job was quicker."""
        def look():
            if job.process.poll() is not None:
                return "over"
            for pid in job.living():
                try:
                    with open(f"/proc/{pid}/environ", "rb") as f:
                        if f"WEFT_RANK={rank}\0".encode() in f.read() + b"\0":
                            return pid
                except OSError:
                    pass
        found = wait_until(look, f"rank {rank}")
        return None if found == "over" else found

    def test_each_rank(self):
        for rank in range(4):
            for _ in range(3):
                with self.subTest(rank=rank, seed=self.seed):
                    job = self.launch("-n", 4, PROBE, "attach", "barrier", "sleep=300")
                    pid = self.victim(job, rank)
                    time.sleep(self.random.uniform(0, 0.02))
                    os.kill(pid, signal.SIGKILL)
                    r = job.finish()
                    self.assertEqual(r.status, 137, r)
                    self.assertIn(f"rank {rank} (pid {pid}) was killed by signal 9", r.err)
                    self.assertEqual(harness.wait_gone(job.mark), [])

    def test_mpiexec(self):
        for _ in range(20):
            with self.subTest(seed=self.seed):
                job = self.launch("-n", 4, PROBE, "attach", "barrier", "sleep=300")
                time.sleep(self.random.uniform(0, 0.02))
                job.process.kill()
                job.process.wait()
                self.assertEqual(harness.wait_gone(job.mark, harness.DEADLINE), [], "ranks outlived mpiexec")


class Debugger(LaunchTest):
    @unittest.skipUnless(shutil.which("nm"), "no nm")
    def test_names_that_debuggers_look_for(self):
        symbols = {}
        for line in subprocess.run(["nm", MPIEXEC], capture_output=True, text=True, check=True).stdout.splitlines():
            *_, kind, name = line.split()
            symbols[name] = kind
        self.assertEqual(symbols.get("MPIR_Breakpoint"), "T")
        for name in ("MPIR_proctable", "MPIR_proctable_size", "MPIR_being_debugged", "MPIR_debug_state"):
            self.assertIn(symbols.get(name), ("B", "D"), name)

    @unittest.skipUnless(shutil.which("gdb") and not harness.SANITIZED, "no gdb, or built with a sanitizer")
    def test_process_table(self):
        r = subprocess.run(
            ["gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "break MPIR_Breakpoint",
             "-ex", "run", "-ex", "finish", "-ex", "print MPIR_proctable_size", "-ex", "print MPIR_debug_state",
             "-ex", "print MPIR_proctable[0].pid != MPIR_proctable[2].pid", "-ex", "print MPIR_proctable[2].executable_name",
             # gdb 13 cannot call a function of the program's on a processor with AMX, so kill is the shell's.
             "-ex", 'eval "shell kill -0 %d && echo is alive", MPIR_proctable[1].pid', "-ex", "delete", "-ex", "continue",
             "--args", MPIEXEC, "-n", "2", PROBE, "attach", "barrier", "finalize", ":", "-n", "1", PROBE, "attach",
             "barrier", "finalize"],
            env=harness.clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=harness.DEADLINE)
        values = [line.split(" = ", 1)[1] for line in r.stdout.splitlines() if line.startswith("$")]
        self.assertEqual(values[:3], ["3", "1", "true"], r)
        self.assertIn("boot_probe", values[3])
        self.assertIn("is alive", r.stdout)
        self.assertIn("exited normally", r.stdout)


if __name__ == "__main__":
    harness.main()
