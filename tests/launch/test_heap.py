"""`mpiexec --shared-heap`: any program runs with it, wrappers included, what is in use can be seen, and nothing is left.

Environment: WEFT_MPIEXEC, WEFT_COMMAND (weft), WEFT_CRASH (crash.c), WEFT_SHARED_HEAP (shared_heap.c).
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from harness import MPIEXEC, LaunchTest, clean_environment, wait_until

COMMAND = os.environ["WEFT_COMMAND"]
CRASH = os.environ["WEFT_CRASH"]
PROGRAM = os.environ["WEFT_SHARED_HEAP"]
IN_SLICE = range(0x2100_0000_0000, 0x6100_0000_0000)


def holders(inode):
    """Processes that map this heap."""
    found = set()
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            if any(line.split()[4] == str(inode) and "memfd:weft-heap" in line for line in maps.read_text().splitlines()):
                found.add(int(maps.parent.name))
        except OSError:
            pass
    return found


class Heap(LaunchTest):
    def test_unmodified_programs(self):
        r = self.run_job("--shared-heap", "-n", 2, "sh", "-c", "echo $WEFT_RANK | cat | sort; ls / > /dev/null; true")
        self.assertEqual((r.status, sorted(r.out.split())), (0, ["0", "1"]), r)
        # A line in one write: lines of several ranks keep apart then, however Python is told to buffer.
        addresses = "import ctypes, os; m = ctypes.CDLL(None).malloc; m.restype = ctypes.c_void_p; os.write(1, b'%d%c' % (m(ctypes.c_size_t(100)), 10))"
        r = self.run_job("--shared-heap", "-n", 3, sys.executable, "-c", addresses)
        blocks = [int(word) for word in r.out.split()]
        self.assertEqual(r.status, 0, r)
        self.assertTrue(len(set(blocks)) == 3 and all(b in IN_SLICE for b in blocks), r)
        # Children of a rank, by fork and otherwise; descriptors closed before the program starts.
        children = "import os, subprocess; subprocess.run(['true'], check=True); pid = os.fork(); pid or os._exit(7); os.write(1, b'%d%c' % (os.waitpid(pid, 0)[1] >> 8, 10))"
        r = self.run_job("--shared-heap", "-n", 2, sys.executable, "-c", children)
        self.assertEqual((r.status, r.out.split()), (0, ["7", "7"]), r)
        r = self.run_job("--shared-heap", "-n", 2, sys.executable, "-c", f"import os; os.closerange(3, 100); os.execvp('{sys.executable}', ['python3', '-c', '''{addresses}'''])")
        self.assertEqual(r.status, 0, r)

    def test_under_wrappers(self):
        for command in ((PROGRAM,), ("sh", "-c", f"{PROGRAM}; exit $?"), ("sh", "-c", f"sh -c '{PROGRAM}; exit $?'; exit $?")):
            r = self.run_job("--shared-heap", "-n", 2, *command)
            self.assertEqual(r.status, 0, r)

    def test_by_the_environment(self):
        self.assertEqual(self.run_job("-n", 2, PROGRAM).status, 77)
        self.assertEqual(self.run_job("-n", 2, PROGRAM, env={"MPIEXEC_SHARED_HEAP": "1"}).status, 0)

    def test_what_is_in_use_is_told(self):
        job = subprocess.Popen([MPIEXEC, "--shared-heap", "-n", "2", CRASH, "compute"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, env=clean_environment())
        try:
            pids = sorted(int(job.stdout.readline().split("pid ")[1].split()[0]) for _ in range(2))
            told = json.loads(subprocess.run([COMMAND, "info", "--heap", "--json"], check=True, capture_output=True, text=True).stdout)
            mine = {pid: told[f"process {pid}"] for pid in pids}
            self.assertEqual(sorted(line["rank"] for line in mine.values()), [0, 1])
            for line in mine.values():
                self.assertEqual(line["size"], 64 << 30)
                self.assertEqual(line["parent"], job.pid)
                self.assertTrue(0 < line["in use"] <= line["most in use"] < line["size"], line)
                self.assertTrue(0 < line["resident"] <= line["in use"] + (1 << 20), line)
            inode = mine[pids[0]]["heap"]
            self.assertEqual(set(pids), holders(inode))
            os.kill(pids[0], signal.SIGKILL)
            job.wait(60)
        finally:
            job.kill()
            job.communicate()
        wait_until(lambda: not holders(inode), "nobody has the dead job's heap")


if __name__ == "__main__":
    unittest.main(verbosity=2)
