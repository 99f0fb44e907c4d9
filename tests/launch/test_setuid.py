"""Programs with more rights than their user: nothing in the environment makes them load a library or connect anywhere."""
import os
import shutil
import socket
import stat
import subprocess
import tempfile
import unittest

import harness
from harness import MPIEXEC, PROBE, clean_environment

SELF = os.environ.get("WEFT_SELF", "mpi_self")             # an MPI program that runs alone
PMIX = os.environ.get("WEFT_FOREIGN_PMIX", "libpmix.so.2")
NOBODY = 65534


def other_group():
    """A group that this user may give a file to, and that is not the one it runs with."""
    if os.getuid() == 0:
        return NOBODY
    return next((g for g in os.getgroups() if g != os.getgid()), None)


class Traps:
    """Everything at once that a launcher's or Weft's variables could make a process do."""

    def __init__(self, place):
        os.makedirs(f"{place}/lib")
        shutil.copy(PMIX, f"{place}/lib/libpmix.so.2")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.name = f"weft-test-{os.getpid()}-{os.path.basename(place)}"
        self.listener.bind("\0" + self.name)
        self.listener.listen()
        self.listener.settimeout(0.2)
        self.pmi, self.theirs = socket.socketpair()
        self.pmi.setblocking(False)
        self.sets = {
            "mpiexec": {"WEFT_RANK": "0", "WEFT_BOOT_ADDR": self.name, "WEFT_COOKIE": "0" * 32},
            "PMI": {"PMI_FD": str(self.theirs.fileno()), "PMI_RANK": "0", "PMI_SIZE": "2"},
            "PMIx": {"PMIX_NAMESPACE": "weft-test", "PMIX_RANK": "0", "PMIX_PREFIX": place},
            "others": {"SLURM_STEP_NUM_TASKS": "2", "OMPI_COMM_WORLD_SIZE": "2", "PMI_RANK": "0", "PMI_SIZE": "2"},
        }

    def close(self):
        for s in (self.listener, self.pmi, self.theirs):
            s.close()

    def sprung(self, stderr):
        """What the process did that it should not have done."""
        found = [line for line in stderr.splitlines() if line.startswith("foreign library")]
        try:
            self.listener.accept()[0].close()
            found.append("connected to WEFT_BOOT_ADDR")
        except socket.timeout:
            pass
        try:
            if self.pmi.recv(4096):
                found.append("wrote to PMI_FD")
        except BlockingIOError:
            pass
        return found


class ForeignRights(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="weft-setuid-")
        self.addCleanup(shutil.rmtree, self.place)
        os.chmod(self.place, 0o755)
        if os.statvfs(self.place).f_flag & os.ST_NOSUID:
            self.skipTest(f"{self.place} is mounted nosuid")
        self.traps = Traps(self.place)
        self.addCleanup(self.traps.close)

    def copy(self, program, mode=0, group=-1):
        path = f"{self.place}/{os.path.basename(program)}"
        shutil.copy(program, path)
        os.chown(path, -1, group)
        os.chmod(path, 0o755 | mode)
        return path

    def run_program(self, program, *words, env, **who):
        return subprocess.run([program, *words], env=clean_environment(**env), pass_fds=[self.traps.theirs.fileno()], cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.DEADLINE, **who)

    def check(self, mode, file_group=-1, **who):
        probe = self.copy(PROBE, mode, file_group)
        for name, env in self.traps.sets.items():
            with self.subTest(name):
                r = self.run_program(probe, "attach", "finalize", env=env, **who)
                self.assertEqual(self.traps.sprung(r.stderr), [], r)
                self.assertEqual(r.returncode, 0, r)
                self.assertIn("rank=0 size=1 ", r.stdout)
                self.assertIn("singleton=1", r.stdout)
                self.assertRegex(r.stderr, r"^weft: process \d+ runs with more rights than its user \(setuid, setgid or file "
                                 r"capabilities\), so [A-Z_]+ is ignored and it runs alone \(MPI_COMM_WORLD has one rank\)\n$")
        # A control variable with a bad value would be an error of MPI_Init.
        r = self.run_program(self.copy(SELF, mode, file_group), env={"WEFT_EAGER_MAX": "nonsense", "WEFT_LOG": "3"}, **who)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)

    def test_the_traps_work(self):
        """Without foreign rights each set of variables does what it is there for."""
        probe = self.copy(PROBE)
        expected = {"mpiexec": "connected to WEFT_BOOT_ADDR", "PMI": "wrote to PMI_FD", "PMIx": "foreign library loaded"}
        for name, env in self.traps.sets.items():
            with self.subTest(name):
                process = subprocess.Popen([probe, "attach"], env=clean_environment(**env), pass_fds=[self.traps.theirs.fileno()],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                try:
                    # Nobody answers it.
                    err = process.communicate(timeout=2)[1]
                except subprocess.TimeoutExpired:
                    process.kill()
                    err = process.communicate()[1]
                found = " ".join(self.traps.sprung(err))
                self.assertIn(expected.get(name, ""), found)
                self.assertNotEqual(process.returncode, 0)
        r = self.run_program(self.copy(SELF), env={"WEFT_EAGER_MAX": "nonsense"})
        self.assertNotEqual(r.returncode, 0, r)

    def test_setuid(self):
        if os.getuid() != 0:
            self.skipTest("NOT TESTED: a setuid copy run by another user needs root")
        self.check(stat.S_ISUID, user=NOBODY, group=NOBODY, extra_groups=[])

    def test_setgid(self):
        group = other_group()
        if group is None:
            self.skipTest("NOT TESTED: a setgid copy needs root, or a user of two groups")
        self.check(stat.S_ISGID, file_group=group)

    def test_setuid_under_mpiexec(self):
        """Each process runs alone, and says so."""
        if os.getuid() != 0:
            self.skipTest("NOT TESTED: a setuid copy run by another user needs root")
        r = self.run_program(self.copy(MPIEXEC), "-n", "2", self.copy(PROBE, stat.S_ISUID), "attach", "finalize", env={},
                             user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(r.stdout.count("size=1"), 2, r)
        self.assertEqual(r.stderr.count("so WEFT_RANK is ignored and it runs alone"), 2, r)


if __name__ == "__main__":
    harness.main_or_skipped()
