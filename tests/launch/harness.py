"""What the launcher's tests share: run mpiexec under a deadline, and look for processes left behind."""
import os
import signal
import subprocess
import sys
import time
import unittest
import uuid

MPIEXEC = os.environ.get("WEFT_MPIEXEC", "mpiexec")
PROBE = os.environ.get("WEFT_PROBE", "boot_probe")
DEADLINE = 120 * float(os.environ.get("WEFT_TEST_SCALE", "1"))  # far above what any of these needs
SANITIZED = bool(os.environ.get("WEFT_SANITIZE"))  # such programs run neither under valgrind nor under a debugger
# ThreadSanitizer makes vfork() a fork(): what the child tells of a failed exec does not reach mpiexec.
needs_vfork = unittest.skipIf(os.environ.get("WEFT_SANITIZE") == "thread", "ThreadSanitizer makes vfork a fork")
HOST_VARIABLES = ("WEFT_", "PMI", "OMPI_", "SLURM_", "MPIEXEC_")


def clean_environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(HOST_VARIABLES)}
    env.update(more)
    return env


class Result:
    def __init__(self, status, out, err, mark):
        self.status, self.out, self.err, self.mark = status, out, err, mark

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"


def state(pid):
    """One letter, as the kernel has it: R S T Z ..."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def marked(mark):
    """Pids of living processes that carry this mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as f:
                if f"LAUNCH_TEST={mark}".encode() not in f.read():
                    continue
            if state(entry) in "ZX":
                continue
        except OSError:
            continue
        found.append(int(entry))
    return found


def wait_until(condition, what, deadline=None):
    end = time.monotonic() + (deadline or DEADLINE)
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited in vain: {what}")


class Launch:
    """A running mpiexec. Its stdout and stderr are pipes unless said otherwise."""

    def __init__(self, *args, env=None, stdin=subprocess.DEVNULL, **popen):
        self.mark = uuid.uuid4().hex
        environment = clean_environment(**(env or {}))
        environment["LAUNCH_TEST"] = self.mark
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen([MPIEXEC, *map(str, args)], env=environment, stdin=stdin, **popen)

    def finish(self, stdin=None, deadline=None):
        try:
            out, err = self.process.communicate(stdin, timeout=deadline or DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"mpiexec did not end\n{out}\n{err}")
        status = self.process.returncode
        return Result(status, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace"), self.mark)

    def living(self):
        return [p for p in marked(self.mark) if p != self.process.pid]

    def signal(self, number):
        self.process.send_signal(number)

    def read_line(self):
        """One line of stdout, as bytes; for jobs that report that they are up."""
        return self.process.stdout.readline()


class LaunchTest(unittest.TestCase):
    maxDiff = None

    def launch(self, *args, **how):
        job = Launch(*args, **how)
        self.addCleanup(self._clean, job)
        return job

    def _clean(self, job):
        if job.process.poll() is None:
            job.process.kill()
            job.process.wait()
        for stream in (job.process.stdin, job.process.stdout, job.process.stderr):
            if stream:
                stream.close()
        left = wait_gone(job.mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertFalse(left, "processes outlived their job")

    def run_job(self, *args, stdin=None, **how):
        return self.launch(*args, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, **how).finish(stdin)

    def good(self, *args, **how):
        result = self.run_job(*args, **how)
        self.assertEqual(result.status, 0, result)
        return result


def wait_gone(mark, seconds=DEADLINE):
    """Ends are asynchronous: a killed process is gone a moment later. What is left after that stays."""
    end = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.01)
    return marked(mark)


def main_or_skipped():
    """As main(), but ctest shows when something could not be tested on this machine, and the log says what."""
    program = unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2, exit=False)
    for test, why in program.result.skipped:
        print(f"{test}: {why}", file=sys.stderr)
    sys.exit(1 if not program.result.wasSuccessful() else 77 if program.result.skipped else 0)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
