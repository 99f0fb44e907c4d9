"""Limits of control groups, made by groups above the process's own, as mpiexec and weft doctor see them."""
import json
import os
import subprocess
import unittest

import harness
from harness import MPIEXEC, clean_environment

WEFT = os.environ.get("WEFT_COMMAND", "weft")
PERIOD, QUOTA, BYTES = 100000, 150000, 3 << 30


def made(path):
    """True where the folder now exists and takes processes."""
    try:
        os.makedirs(path)
        return True
    except OSError:
        return False


class Limits(unittest.TestCase):
    def groups(self):
        """Folders of a group three levels down, by controller; the limits are those of the middle one."""
        found = {}
        name = f"weft-test-{os.getpid()}"
        texts = {"cpu": (("cpu.cfs_quota_us", QUOTA), ("cpu.max", f"{QUOTA} {PERIOD}")),
                 "memory": (("memory.limit_in_bytes", BYTES), ("memory.max", BYTES))}
        for controller, ((file_1, text_1), (file_2, text_2)) in texts.items():
            for mount, file, text in ((f"/sys/fs/cgroup/{controller}", file_1, text_1), ("/sys/fs/cgroup", file_2, text_2)):
                top = f"{mount}/{name}"
                if not os.path.isdir(mount) or not (os.path.isdir(top) or made(top)):
                    continue
                self.addCleanup(lambda path=top: os.path.isdir(path) and os.rmdir(path))
                try:
                    if mount == "/sys/fs/cgroup":
                        for above in (mount, top):
                            with open(f"{above}/cgroup.subtree_control", "w") as f:
                                f.write(f"+{controller}")
                    for below in (f"{top}/middle", f"{top}/middle/own"):
                        if not os.path.isdir(below):
                            os.mkdir(below)
                            self.addCleanup(os.rmdir, below)
                    with open(f"{top}/middle/{file}", "w") as f:
                        f.write(str(text))
                    found[controller] = f"{top}/middle/own"
                    break
                except OSError:
                    continue
        return found

    def test_limits_of_groups_above(self):
        found = self.groups()
        if not found:
            self.skipTest("NOT TESTED: no right to make control groups with limits")

        def enter():
            for folder in set(found.values()):
                with open(f"{folder}/cgroup.procs", "w") as f:
                    f.write("0")
        r = subprocess.run([WEFT, "doctor", "--json"], env=clean_environment(), stdout=subprocess.PIPE, text=True, preexec_fn=enter,
                           timeout=harness.DEADLINE)
        told = json.loads(r.stdout)
        if "cpu" in found:
            self.assertIn(f"quota of {QUOTA / PERIOD}", told["processors"]["found"])
            self.assertIn(os.path.dirname(found["cpu"]), told["processors"]["found"])
            r = subprocess.run([MPIEXEC, "-n", "2", "--report-bindings", "true"], env=clean_environment(), preexec_fn=enter,
                               stderr=subprocess.PIPE, text=True, timeout=harness.DEADLINE)
            self.assertEqual(r.returncode, 0, r)
            self.assertIn("rank 0: not bound", r.stderr)
        if "memory" in found:
            self.assertIn("3 GiB", told["memory"]["found"])
            self.assertIn(os.path.dirname(found["memory"]), told["memory"]["found"])


if __name__ == "__main__":
    harness.main_or_skipped()
