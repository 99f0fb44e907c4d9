"""Kills ranks, and mpiexec itself, at random points: the job ends within the deadline with a message that names the rank,
and leaves nothing behind: no process, no file in /dev/shm, no abstract socket.

Environment: WEFT_MPIEXEC, WEFT_CRASH (the program crash.c), WEFT_SEED (optional).
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

MPIEXEC = os.environ["WEFT_MPIEXEC"]
CRASH = os.environ["WEFT_CRASH"]
DEADLINE_S = 60  # mpiexec gives two seconds between SIGTERM and SIGKILL; the rest is for a busy machine
SEED = int(os.environ.get("WEFT_SEED", "20260801"))


def abstract_names():
    return {line.split()[-1].lstrip("@") for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:] if "@" in line}


def name_of_job(pid):
    """The abstract name that mpiexec told this rank, for the case that its inherited socket is closed."""
    for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if word.startswith(b"WEFT_BOOT_ADDR="):
            return word.split(b"=", 1)[1].decode()
    return None


def files():
    try:
        return {name for name in os.listdir("/dev/shm") if "weft" in name.lower()}
    except OSError:
        return set()


def alive(pid):
    """True for a process that runs; a zombie has ended, its parent is just not looking."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Job:
    """A job of `n` ranks of crash.c; knows its ranks' pids once all have announced themselves."""

    def __init__(self, n, mode, *options):
        self.before_files = files()
        self.process = subprocess.Popen([MPIEXEC, *options, "-n", str(n), CRASH, mode], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, start_new_session=True)
        self.pids = {}
        while len(self.pids) < n:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the job ended before it began: {self.process.stderr.read()}")
            found = re.search(r"rank (\d+) pid (\d+)", line)
            if found:
                self.pids[int(found.group(1))] = int(found.group(2))
        self.name = name_of_job(self.pids[0])
        if self.name is None:
            raise AssertionError("the ranks were not told an abstract name (WEFT_BOOT_ADDR)")

    def end(self):
        """Waits for mpiexec and its pipes; returns (exit status, standard error, seconds)."""
        start = time.monotonic()
        try:
            _, err = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            left = [rank for rank, pid in self.pids.items() if alive(pid)]
            os.killpg(self.process.pid, signal.SIGKILL)
            for pid in self.pids.values():
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)
            self.process.communicate()
            raise AssertionError(f"the job was still there after {DEADLINE_S} s; ranks left: {left}") from None
        return self.process.returncode, err, time.monotonic() - start

    def nothing_left(self, case):
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until and any(alive(pid) for pid in self.pids.values()):
            time.sleep(0.01)
        case.assertEqual([pid for pid in self.pids.values() if alive(pid)], [], "processes left")
        case.assertNotIn(self.name, abstract_names(), "the abstract socket is left")
        case.assertEqual(files() - self.before_files, set(), "files left")


class Killed(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")

    def kill_one(self, n, victim, mode, number=signal.SIGKILL):
        job = Job(n, mode)
        time.sleep(self.random.uniform(0, 0.2))
        os.kill(job.pids[victim], number)
        status, err, _ = job.end()
        job.nothing_left(self)
        self.assertEqual(status, 128 + number, err)
        self.assertRegex(err, rf"rank {victim}\b", "the message does not name the rank")
        self.assertIn(signal.Signals(number).name, err)

    def test_each_rank_while_messages_flow(self):
        for n in (1, 2, 3, 4):
            for victim in range(n):
                with self.subTest(n=n, victim=victim):
                    self.kill_one(n, victim, "mix")

    def test_at_random_points(self):
        for _ in range(8):
            n = self.random.randint(2, 4)
            self.kill_one(n, self.random.randrange(n), "mix")

    def test_while_others_wait(self):
        for victim in range(3):
            self.kill_one(3, victim, "block")

    def test_holder_of_a_lock(self):
        self.kill_one(3, 0, "lock")

    def test_while_others_are_outside(self):
        for victim in range(3):
            self.kill_one(3, victim, "compute")

    def test_crash_signals(self):
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGTERM):
            self.kill_one(2, 1, "mix", number)

    def test_mpiexec_killed(self):
        for mode in ("mix", "block", "compute"):
            with self.subTest(mode=mode):
                job = Job(3, mode)
                time.sleep(self.random.uniform(0, 0.1))
                os.kill(job.process.pid, signal.SIGKILL)
                job.end()
                job.nothing_left(self)

    def test_all_at_once(self):
        job = Job(4, "mix")
        for pid in job.pids.values():
            os.kill(pid, signal.SIGKILL)
        status, _, _ = job.end()
        job.nothing_left(self)
        self.assertEqual(status, 137)

    def test_stopped_rank_does_not_keep_the_job(self):
        # A rank that is stopped cannot react to SIGTERM; it must go all the same.
        job = Job(2, "mix")
        os.kill(job.pids[0], signal.SIGSTOP)
        os.kill(job.pids[1], signal.SIGKILL)
        status, err, _ = job.end()
        job.nothing_left(self)
        self.assertEqual(status, 137, err)


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main(verbosity=2)
