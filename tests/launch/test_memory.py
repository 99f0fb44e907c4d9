"""Where memfd_create is denied: ranks share a file in /dev/shm, or use sockets where that cannot be had either."""
import json
import os
import subprocess
import sys
import unittest

import harness
from harness import MPIEXEC, PROBE, clean_environment
from test_boot import fields
from test_pmi import Server

DENIED = os.environ.get("WEFT_DENIED", "without_memfd")
PROGRAMS = os.environ.get("WEFT_PROGRAMS", "")  # folder of the multi-rank programs
WEFT = os.environ.get("WEFT_COMMAND", "weft")


def left_in_shm():
    return [name for name in os.listdir("/dev/shm") if name.startswith("weft")]


class Denied(unittest.TestCase):
    setup = None  # shell text that changes /dev/shm in a mount namespace of its own

    def prefix(self):
        if self.setup is None:
            return [DENIED]
        for unshare in (["unshare", "--mount"], ["unshare", "--mount", "--user", "--map-root-user"]):
            inside = [*unshare, "sh", "-c", f"{self.setup} || exit 77; exec \"$@\"", "sh", DENIED]
            tried = subprocess.run([*inside, "true"], capture_output=True, text=True)
            if tried.returncode == 0:
                return inside
        self.skipTest(f"NOT TESTED: no such /dev/shm can be made here: {tried.stderr.strip()}")

    def run_denied(self, *words, **env):
        r = subprocess.run([*self.prefix(), *map(str, words)], env=clean_environment(**env), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=5 * harness.DEADLINE)
        if r.returncode == 77 and "SKIPPED" in r.stderr:
            self.skipTest("NOT TESTED: " + r.stderr)
        return r

    def good(self, *words, **env):
        r = self.run_denied(*words, **env)
        self.assertEqual(r.returncode, 0, r)
        return r

    def doctor(self):
        r = self.run_denied(WEFT, "doctor", "--json")
        return json.loads(r.stdout), r.returncode

    def always_works(self):
        """What shares no memory."""
        self.assertEqual(len(self.good(MPIEXEC, "-n", 3, "hostname").stdout.split()), 3)
        self.good(f"{PROGRAMS}/self")
        self.good(MPIEXEC, "-n", 1, f"{PROGRAMS}/self")
        r = self.good(MPIEXEC, "-n", 1, PROBE, *("attach", "barrier", "finalize", "detach") * 2)
        self.assertEqual([fields(line)["generation"] for line in r.stdout.splitlines()], ["0", "1"])


class Fallback(Denied):
    """/dev/shm is as large as this machine has it."""

    def test_the_filter_works(self):
        r = self.run_denied(sys.executable, "-c", "import os; os.memfd_create('x')")
        self.assertIn("PermissionError", r.stderr)

    def test_jobs(self):
        before = left_in_shm()
        for ranks, program in ((2, "modes"), (2, "large"), (4, "collectives"), (2, "self"), (3, "sessions")):
            with self.subTest(program):
                self.good(MPIEXEC, "-n", ranks, f"{PROGRAMS}/{program}")
        self.assertEqual(left_in_shm(), before)
        self.always_works()

    def test_attach_again(self):
        r = self.good(MPIEXEC, "-n", 2, PROBE, *("attach", "barrier", "finalize", "detach") * 3)
        self.assertEqual(sorted(fields(line)["generation"] for line in r.stdout.splitlines()), ["0", "0", "1", "1", "2", "2"])

    def test_places_are_told(self):
        r = self.good(MPIEXEC, "-n", 2, PROBE, "attach", "barrier", "locality", "finalize")
        self.assertEqual(r.stdout.count("locality"), 4)

    def test_nothing_left_after_a_kill(self):
        before = left_in_shm()
        r = self.run_denied(MPIEXEC, "-n", 2, PROBE, "attach", "barrier", "@0:kill=9", "sleep=300")
        self.assertEqual(r.returncode, 137, r)
        self.assertEqual(left_in_shm(), before)

    def test_another_launcher(self):
        for size in (1, 3):
            server = Server(size, "attach", "barrier", "finalize", wrapper=self.prefix())
            results = server.serve()
            if any("SKIPPED" in err for _, _, err in results):
                self.skipTest("NOT TESTED: no seccomp filters")
            self.assertEqual([(code, err) for code, _, err in results], [(0, "")] * size)

    def test_doctor(self):
        found, status = self.doctor()
        self.assertEqual(found["memfd"]["state"], "stepped around")
        self.assertIn("memfd_create: Operation not permitted", found["memfd"]["found"])
        self.assertRegex(found["memfd"]["instead"], r"a file in /dev/shm, which has room for jobs of up to \d+ ranks")


class Small(Denied):
    setup = "mount -t tmpfs -o size=64m tmpfs /dev/shm"

    def test_what_fits(self):
        for ranks, program in ((2, "modes"), (2, "large"), (8, "collectives")):
            with self.subTest(program):
                self.good(MPIEXEC, "-n", ranks, f"{PROGRAMS}/{program}")

    def test_what_does_not_goes_by_sockets(self):
        r = self.good(MPIEXEC, "-n", 30, f"{PROGRAMS}/ring", WEFT_LOG="1")
        self.assertIn("no shared segment, sockets", r.stderr)

    def test_doctor_counts_the_ranks(self):
        found, _ = self.doctor()
        ranks = int(found["memfd"]["instead"].split("up to ")[1].split()[0])
        self.assertIn(ranks, range(18, 25))
        self.assertNotIn("sockets", self.good(MPIEXEC, "-n", ranks, f"{PROGRAMS}/ring", WEFT_LOG="1").stderr)
        self.assertIn("sockets", self.good(MPIEXEC, "-n", ranks + 1, f"{PROGRAMS}/ring", WEFT_LOG="1").stderr)


class Tiny(Denied):
    setup = "mount -t tmpfs -o size=1m tmpfs /dev/shm"

    def test_it(self):
        self.good(MPIEXEC, "-n", 2, f"{PROGRAMS}/modes")
        self.always_works()


class Neither(Denied):
    setup = "mount -t tmpfs -o ro tmpfs /dev/shm"

    def test_it(self):
        for ranks, program in ((2, "modes"), (2, "large"), (4, "collectives"), (3, "sessions")):
            with self.subTest(program):
                self.good(MPIEXEC, "-n", ranks, f"{PROGRAMS}/{program}")
        self.always_works()

    def test_another_launcher(self):
        server = Server(3, "attach", "barrier", "finalize", wrapper=self.prefix())
        results = server.serve()
        if any("SKIPPED" in err for _, _, err in results):
            self.skipTest("NOT TESTED: no seccomp filters")
        self.assertEqual([(code, err) for code, _, err in results], [(0, "")] * 3)

    def test_doctor(self):
        found, status = self.doctor()
        self.assertEqual((found["memfd"]["state"], status), ("stepped around", 0))
        self.assertIn("Read-only file system", found["memfd"]["found"])


if __name__ == "__main__":
    harness.main_or_skipped()
