"""A job in what containers are made of: namespaces, a small /dev/shm, no ptrace, a CPU quota, a user id of nobody here."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import MPIEXEC
from test_options import quota_group

PROGRAMS = os.environ.get("WEFT_PROGRAMS", "")    # directory of modes, large and without_cma
LIBRARIES = os.environ.get("WEFT_LIBRARIES", "")  # directory of libmpi_abi.so.1
SETUP = ("mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 77; "
         "test $(df --output=size -k /dev/shm | tail -1) -eq 65536 || exit 78; exec \"$@\"")


class Container(unittest.TestCase):
    def enter(self):
        """The command prefix that makes the container; skips where neither root nor user namespaces can."""
        spaces = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts"]
        if os.getuid() == 0:
            nobody = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", "--no-new-privs"]
        else:
            spaces += ["--user", "--map-root-user"]
            nobody = []
        prefix = [*spaces, "sh", "-c", SETUP, "sh", *nobody]
        tried = subprocess.run([*prefix, "true"], capture_output=True, text=True)
        if tried.returncode:
            self.skipTest(f"no such namespaces can be made here: {tried.stderr.strip()}")
        return prefix

    def setUp(self):
        self.prefix = self.enter()
        # A foreign user may not be able to reach the build tree.
        self.place = tempfile.mkdtemp(prefix="weft-container-")
        self.addCleanup(shutil.rmtree, self.place)
        os.chmod(self.place, 0o755)
        for path in (MPIEXEC, *(f"{PROGRAMS}/{p}" for p in ("modes", "large", "without_cma")),
                     *glob.glob(f"{LIBRARIES}/libmpi_abi.so.1*")):
            shutil.copy(path, self.place)
        self.group = quota_group()
        if self.group:
            self.addCleanup(os.rmdir, self.group)

    def job(self, *words):
        def limit():
            if self.group:
                with open(f"{self.group}/cgroup.procs", "w") as f:
                    f.write("0")
        env = harness.clean_environment(LD_LIBRARY_PATH=self.place)
        r = subprocess.run([*self.prefix, f"{self.place}/without_cma", f"{self.place}/mpiexec", *map(str, words)], env=env,
                           cwd=self.place, preexec_fn=limit, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=5 * harness.DEADLINE)
        if r.returncode == 77 and "SKIPPED" in r.stderr + r.stdout:
            self.skipTest(r.stderr + r.stdout)
        return r

    def test_it_is_a_container(self):
        r = self.job("-n", 1, "sh", "-c", "echo uid $(id -u); df --output=size -k /dev/shm | tail -1; ls /proc | grep -c '^[0-9]'")
        self.assertEqual(r.returncode, 0, r)
        uid, size, processes = r.stdout.split()[1:]
        if os.getuid() == 0:
            self.assertEqual(uid, "54321")
        self.assertEqual(size, "65536")
        self.assertLess(int(processes), 20)

    def test_messages_of_all_sizes(self):
        for ranks, program in ((2, "modes"), (2, "large")):
            with self.subTest(program):
                r = self.job("-n", ranks, f"{self.place}/{program}")
                self.assertEqual(r.returncode, 0, r)

    def test_failure_is_seen(self):
        r = self.job("-n", 3, "sh", "-c", "test $WEFT_RANK = 1 && kill -9 $$; sleep 300")
        self.assertEqual(r.returncode, 137, r)
        self.assertIn("rank 1", r.stderr)


if __name__ == "__main__":
    harness.main()
