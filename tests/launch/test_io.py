"""stdin, stdout and stderr of ranks: who gets them, intact and whole."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

import harness
from harness import MPIEXEC, LaunchTest, wait_until


class Stdin(LaunchTest):
    def test_rank_0_reads_and_the_others_see_the_end(self):
        r = self.run_job("-n", 3, "-l", "sh", "-c", "cat; echo end", stdin=b"one\ntwo\n")
        self.assertEqual(r.status, 0, r)
        self.assertEqual(sorted(r.out.splitlines()), ["[0] end", "[0] one", "[0] two", "[1] end", "[2] end"])

    def test_others_have_dev_null(self):
        r = self.good("-n", 3, "-l", "readlink", "/proc/self/fd/0")
        self.assertIn("[1] /dev/null\n", r.out)
        self.assertIn("[2] /dev/null\n", r.out)

    def test_ten_megabytes_through_a_pipe(self):
        data = os.urandom(10_000_000)
        job = self.launch("-n", 2, "sh", "-c", "if [ $WEFT_RANK = 0 ]; then cat; fi", stdin=subprocess.PIPE)
        out, err = job.process.communicate(data, timeout=harness.DEADLINE)
        self.assertEqual((job.process.returncode, err), (0, b""))
        self.assertTrue(out == data, "10 MB came out changed")

    def test_writer_sees_that_rank_0_closed(self):
        # The reader of our pipe is rank 0 alone: when it is gone, writing fails instead of filling a dead pipe.
        job = self.launch("-n", 2, "sh", "-c", "if [ $WEFT_RANK = 0 ]; then exit 0; fi; sleep 1", stdin=subprocess.PIPE)
        with self.assertRaises(BrokenPipeError):
            for _ in range(1000):
                os.write(job.process.stdin.fileno(), b"x" * 4096)
        try:
            job.process.stdin.close()
        except BrokenPipeError:
            pass
        job.process.stdin = None
        self.assertEqual(job.finish().status, 0)

    def test_inherited_descriptors_stay_blocking(self):
        reads, writes = os.pipe()
        out_r, out_w = os.pipe()
        for options in ((), ("-l",)):
            job = self.launch("-n", 2, *options, "sh", "-c", "echo up; sleep 0.3", stdin=reads, stdout=out_w, stderr=out_w)
            os.read(out_r, 100)
            for fd in (reads, out_w):
                self.assertFalse(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)
            job.process.wait(harness.DEADLINE)
            for fd in (reads, out_w):
                self.assertFalse(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)
        for fd in (reads, writes, out_r, out_w):
            os.close(fd)

    def test_closed_standard_descriptors(self):
        env = harness.clean_environment()
        script = f"{MPIEXEC} -n 2 sh -c 'exit 3' <&- >&- 2>&-"
        self.assertEqual(subprocess.run(["sh", "-c", script], env=env, timeout=harness.DEADLINE).returncode, 3)


def children(pid):
    """All descendants that live."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as f:
                words = f.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if entry.isdigit() and int(words[1]) == pid and words[0] not in "ZX":
            found += [int(entry), *children(int(entry))]
    return found


class Typed(bytes):
    """What a user types, in a conversation."""


class Terminal(LaunchTest):
    def spawn(self, shell_command):
        """Runs a command line in an interactive shell's place: a session of its own on a new terminal."""
        pid, master = pty.fork()
        if pid == 0:
            try:
                os.execve("/bin/sh", ["sh", "-c", shell_command], harness.clean_environment())
            finally:
                os._exit(99)
        self.addCleanup(os.close, master)
        self.unread = b""
        return pid, master

    def read_until(self, master, text):
        """Reads past `text`; what came with it and after it is left for the next call."""
        seen = self.unread
        end = time.monotonic() + harness.DEADLINE
        while text not in seen:
            self.assertLess(time.monotonic(), end, seen)
            if select.select([master], [], [], 0.1)[0]:
                try:
                    seen += os.read(master, 4096)
                except OSError:
                    self.assertIn(text, seen)
        self.unread = seen[seen.index(text) + len(text):]

    def wait_for(self, pid):
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def converse(self, shell_command, *steps):
        """Runs a command line to its end: what is Typed goes in, all else has to come out, in this order."""
        pid, master = self.spawn(shell_command)
        for step in steps:
            if isinstance(step, Typed):
                os.write(master, step)
            else:
                self.read_until(master, step)
        self.wait_for(pid)

    def test_typed_lines_reach_rank_0(self):
        self.converse(f"{MPIEXEC} -n 2 sh -c 'read line && echo got $line'; echo status $?",
                      Typed(b"hello\n"), b"got hello", b"status 1")  # rank 1's read found the end of /dev/null

    def test_end_of_input_typed(self):
        self.converse(f"{MPIEXEC} -n 1 sh -c 'cat; echo over'; echo status $?",
                      Typed(b"hello\n"), b"hello\r\nhello", Typed(b"\x04"), b"over", b"status 0")

    def test_interrupt_typed(self):
        self.converse(f"trap : INT; {MPIEXEC} -n 2 sh -c 'echo up; sleep 300'; echo status $?",
                      b"up\r\nup", Typed(b"\x03"), b"status 130")

    def test_rank_0_has_the_terminal(self):
        # Standard input is it, /dev/tty can be read, and its modes changed.
        script = ("test $WEFT_RANK = 0 || exit 0; test -t 0 || exit 3; stty -echo; printf name:; read x </dev/tty; stty echo; echo got $x")
        self.converse(f"{MPIEXEC} -n 2 sh -c '{script}'; echo status $?", b"name:", Typed(b"Ada\n"), b"got Ada", b"status 0")

    def test_other_ranks_cannot_be_stopped_by_it(self):
        script = "test $WEFT_RANK = 1 || exit 0; stty -echo; read x </dev/tty; echo read $?"
        self.converse(f"stty tostop; {MPIEXEC} -n 2 sh -c '{script}'; echo status $?", b"read 1", b"status 0")

    def test_one_interrupt_is_one(self):
        script = 'n=0; trap "n=\\$((n+1)); echo int \\$n" INT; echo up; while test $n -lt 2; do sleep 0.05; done'
        # noflsh: else each Ctrl-C throws away what was written and not yet read.
        pid, master = self.spawn(f"stty noflsh; trap : INT; {MPIEXEC} -n 2 -l sh -c '{script}'; echo status $?")
        for rank in (b"0", b"1"):
            self.read_until(master, b"up")
        os.write(master, b"\x03")
        self.read_until(master, b"int 1")
        self.read_until(master, b"int 1")
        time.sleep(0.3)
        while select.select([master], [], [], 0)[0]:
            self.unread += os.read(master, 4096)
        self.assertNotIn(b"int 2", self.unread)
        # Two within some seconds end the job, whatever ranks do with them.
        while b"interrupted twice; killing the job" not in self.unread:
            os.write(master, b"\x03")
            while b"interrupted twice; killing the job" not in self.unread and select.select([master], [], [], 1)[0]:
                self.unread += os.read(master, 4096)
        self.read_until(master, b"status 1")
        self.wait_for(pid)

    def test_an_interactive_program_lives_through_interrupts(self):
        script = 'trap "echo interrupted" INT; echo up; while :; do read x || continue; echo got $x; test $x = end && exit 0; done'
        pid, master = self.spawn(f"stty noflsh; trap : INT; {MPIEXEC} -n 1 sh -c '{script}'; echo status $?")
        self.read_until(master, b"up")
        os.write(master, b"\x03")
        self.read_until(master, b"interrupted")
        time.sleep(15)  # two within 5 seconds, as mpiexec gets to see them, would mean the job
        os.write(master, b"\x03")
        self.read_until(master, b"interrupted")
        os.write(master, b"on\n")
        self.read_until(master, b"got on")
        os.write(master, b"end\n")
        self.read_until(master, b"status 0")
        self.wait_for(pid)

    def test_job_control(self):
        # Ctrl-Z stops the whole job, fg continues it.
        with tempfile.TemporaryDirectory() as d:
            shell = (f"set -m; {MPIEXEC} -n 2 sh -c 'echo up; while test ! -e {d}/go; do sleep 0.05; done; echo done'; "
                     f"echo stopped $?; read x; fg >/dev/null; echo status $?")
            pid, master = self.spawn(shell)
            self.read_until(master, b"up")
            self.read_until(master, b"up")
            os.write(master, b"\x1a")
            self.read_until(master, b"stopped 14")  # dash: 128 + the signal that stopped it
            # D: a shell in vfork() whose child was stopped before it became `sleep`.
            wait_until(lambda: len(children(pid)) >= 3 and all(harness.state(p) in "TD" for p in children(pid)), "all are stopped")
            open(f"{d}/go", "w").close()
            time.sleep(0.2)
            self.assertLessEqual({harness.state(p) for p in children(pid)}, {"T", "D"})
            os.write(master, b"\n")
            self.read_until(master, b"done")
            self.read_until(master, b"done")
            self.read_until(master, b"status 0")
            self.wait_for(pid)

    def test_reading_in_the_background_stops_the_job(self):
        # As with any program; fg lets it read.
        shell = (f"set -m; {MPIEXEC} -n 2 sh -c 'test $WEFT_RANK = 1 && exit; read x; echo got $x' & "
                 f"while kill -0 $!; do case $(sed 's/.*) //' /proc/$!/stat) in T*) break;; esac; sleep 0.05; done; "
                 f"echo it stopped; fg >/dev/null; echo status $?")
        self.converse(shell, b"it stopped", Typed(b"hello\n"), b"got hello", b"status 0")

    def test_modes_are_restored_after_a_kill(self):
        self.converse(f"{MPIEXEC} -n 1 sh -c 'stty -echo -icanon; kill -9 $$'; echo status $?; stty -a",
                      b"status 137", b" icanon", b" echo ")

    def test_an_interactive_shell(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        self.converse(f"{MPIEXEC} -n 1 bash --norc -i; echo status $?; read x; echo then $x",
                      Typed(b"sleep 300 & jobs; stty -a >/dev/null && echo mo''des; kill %1; exit 5\n"),
                      b"Running", b"modes", b"status 5", Typed(b"on\n"), b"then on")

    def test_background_does_not_stop(self):
        # Job control on: the job is in a background process group of the terminal and must run to its end all the same.
        self.converse(f"set -m; {MPIEXEC} -n 2 sh -c 'sleep 0.3; echo ran' & wait $!; echo status $?",
                      Typed(b"not for a background job\n"), b"status 0")


class Output(LaunchTest):
    def test_order_within_a_stream(self):
        r = self.good("-n", 2, "sh", "-c", "seq 1000")
        self.assertEqual(sorted(r.out.split(), key=int), [str(n) for n in range(1, 1001) for _ in range(2)])

    def test_labels(self):
        r = self.good("-n", 2, "-l", "sh", "-c", "echo out; echo err >&2; printf unfinished")
        self.assertEqual(sorted(r.out.splitlines()), ["[0] out", "[0] unfinished", "[1] out", "[1] unfinished"])
        self.assertEqual(sorted(r.err.splitlines()), ["[0] err", "[1] err"])

    def test_a_hundred_thousand_labelled_lines_per_rank(self):
        lines = 100_000
        job = self.launch("-n", 4, "--tag-output", "seq", "-f", "%.0f " + "x" * 60, lines)
        r = job.finish(deadline=5 * harness.DEADLINE)
        self.assertEqual(r.status, 0)
        expected = [1] * 4
        for line in r.out.splitlines():
            m = re.fullmatch(r"\[([0-3])\] (\d+) x{60}", line)
            self.assertTrue(m, f"a broken line: {line!r}")
            rank = int(m[1])
            self.assertEqual(int(m[2]), expected[rank])
            expected[rank] += 1
        self.assertEqual(expected, [lines + 1] * 4)

    def test_long_lines_stay_whole(self):
        r = self.good("-n", 3, "-l", sys.executable, "-c",
                      "import os\nfor i in range(20): os.write(1, os.environ['WEFT_RANK'].encode() * 50000 + b'\\n')")
        for line in r.out.splitlines():
            self.assertRegex(line, r"^\[(\d)\] \1{50000}$")

    def test_slow_reader_holds_up_nothing_but_the_writers(self):
        job = self.launch("-n", 2, "-l", "sh", "-c", "seq 300000; exit 0")
        time.sleep(0.5)  # nobody reads: pipes and queue fill up
        self.assertIsNone(job.process.poll())
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().status, 143)

    def test_reader_leaves(self):
        job = self.launch("-n", 2, "-l", "sh", "-c", "while :; do echo y; done")
        job.read_line()
        job.process.stdout.close()
        job.process.stdout = None
        r = job.finish()
        self.assertEqual((r.status, r.err), (141, "mpiexec: stdout was closed; ending the job\n"))

    def test_timestamps(self):
        r = self.good("-n", 2, "--timestamp-output", "-l", "echo", "x")
        for line in r.out.splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[[01]\] x$")
        self.assertEqual(len(r.out.splitlines()), 2)

    def test_merged(self):
        for options in ((), ("-l",)):
            r = self.good("-n", 2, *options, "--merge-stderr-to-stdout", "sh", "-c", "echo e >&2")
            self.assertEqual(r.err, "")
            self.assertEqual(r.out.count("e\n"), 2)

    def test_files(self):
        with tempfile.TemporaryDirectory() as d:
            r = self.good("-n", 2, "-outfile-pattern", f"{d}/out-%r-%h", "-errfile-pattern", f"{d}/err-%r",
                          "sh", "-c", "echo o$WEFT_RANK; echo e$WEFT_RANK >&2")
            self.assertEqual((r.out, r.err), ("", ""))
            host = os.uname().nodename
            for rank in range(2):
                with open(f"{d}/out-{rank}-{host}") as f:
                    self.assertEqual(f.read(), f"o{rank}\n")
                with open(f"{d}/err-{rank}") as f:
                    self.assertEqual(f.read(), f"e{rank}\n")

    def test_ranks_of_one_name_share_a_file(self):
        say = ("sh", "-c", "for i in 1 2 3; do echo o$WEFT_RANK.$i; echo e$WEFT_RANK.$i >&2; done")
        with tempfile.TemporaryDirectory() as d:
            for again in range(2):  # the second job's output takes the place of the first one's
                r = self.good("-n", 3, "-outfile-pattern", f"{d}/all", "-errfile-pattern", f"{d}/sub/../err.%a", *say, ":", "-n", 1, *say)
                self.assertEqual((r.out, r.err), ("", ""))
                with open(f"{d}/all") as f:
                    self.assertEqual(sorted(f.read().split()), [f"o{rank}.{i}" for rank in range(4) for i in (1, 2, 3)])
                with open(f"{d}/err.0") as f:
                    self.assertEqual(sorted(f.read().split()), [f"e{rank}.{i}" for rank in range(3) for i in (1, 2, 3)])
            # Both streams in one file.
            self.good("-n", 2, "-outfile-pattern", f"{d}/all", "-errfile-pattern", f"{d}/all", *say)
            with open(f"{d}/all") as f:
                self.assertEqual(len(f.read().split()), 12)

    def test_unknown_escapes(self):
        with tempfile.TemporaryDirectory() as d:
            for option in ("-outfile-pattern", "-errfile-pattern", "-prepend-pattern", "--output-filename"):
                for text, unknown in (("x%q", "%q"), ("%d.%r", "%d"), ("100%", "%"), ("%%%", "%")):
                    with self.subTest(option + text):
                        r = self.run_job("-n", 1, option, f"{d}/{text}", "echo", "x")
                        self.assertEqual(r.status, 2, r)
                        self.assertIn(f"{d}/{text}", r.err)
                        self.assertIn(f" {unknown} is unknown; %r is the rank" if option != "--output-filename" or text[-1] != "%" else
                                      " %/ is unknown; %r is the rank", r.err)
            self.assertEqual(os.listdir(d), [])
            self.good("-n", 1, "-outfile-pattern", f"{d}/100%%-%r%%", "echo", "x")
            self.assertEqual(os.listdir(d), ["100%-0%"])

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            r = self.launch("-n", 2, "-l", "sh", "-c", "while :; do echo y; done", stdout=full).finish()
            self.assertEqual(r.status, 1, r)
            self.assertEqual(r.err, "mpiexec: cannot write to stdout: No space left on device (errno 28); ending the job\n")
            r = self.launch("-n", 1, "-l", "echo", "x", stdout=full).finish()
            self.assertEqual(r.status, 1, r)
            self.assertIn("mpiexec: cannot write to stdout: No space left on device (errno 28)", r.err)
            self.assertEqual(self.launch("-n", 1, "-l", "sh", "-c", "echo x >&2", stderr=full).finish().status, 1)
            for word in ("-h", "--version", "--man"):
                r = self.launch(word, stdout=full).finish()
                self.assertEqual((r.status, r.err), (1, "mpiexec: cannot write to stdout: No space left on device (errno 28)\n"))

    def test_pattern(self):
        r = self.good("-n", 2, "-prepend-pattern", "%h/%r: ", "echo", "x")
        self.assertEqual(sorted(r.out.splitlines()), [f"{os.uname().nodename}/{rank}: x" for rank in range(2)])

    def test_output(self):
        say = ("sh", "-c", "echo o; echo e >&2")
        r = self.good("-n", 1, "--output", "tag,merge", *say)
        self.assertEqual((sorted(r.out.splitlines()), r.err), (["[0] e", "[0] o"], ""))
        with tempfile.TemporaryDirectory() as d:
            for option, name in ((("--output-filename", f"{d}/new/a"), "a/rank.1/std{}"), (("--output", f"dir={d}/new/b"), "b/rank.1/std{}"),
                                 (("--output", f"file={d}/new/c"), "c.1.{}")):
                r = self.good("-n", 2, *option, *say)
                self.assertEqual((r.out, r.err), ("", ""))
                for stream, text in (("out", "o\n"), ("err", "e\n")):
                    with open(f"{d}/new/{name.format(stream)}") as f:
                        self.assertEqual(f.read(), text)

    def test_file_that_cannot_be_opened(self):
        r = self.run_job("-n", 1, "-outfile-pattern", "/dev/null/x", "echo", "x")
        self.assertEqual(r.status, 1)
        self.assertIn("cannot open /dev/null/x for rank 0: Not a directory", r.err)

    def test_background_child_does_not_hold_up_the_end(self):
        r = self.good("-n", 1, "-l", "sh", "-c", "sleep 3 & echo done")
        self.assertEqual(r.out, "[0] done\n")


if __name__ == "__main__":
    harness.main()
