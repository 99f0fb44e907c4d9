"""Ranks started by Slurm: a cluster of this one machine, with its own keys, ports and state, for as long as the test runs.
Needs root and Debian's slurm-wlm, munge and (for --mpi=pmix) libpmix-dev; without them it is skipped, and says so."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import MPIEXEC, clean_environment

PROGRAMS = os.environ.get("WEFT_PROGRAMS", "")    # directory of modes, grandchild and others
STUCK = os.environ.get("WEFT_STUCK", "stuck")
NEEDED = ("slurmctld", "slurmd", "srun", "munged")
CONFIGURATION = """
ClusterName=weft
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={area}/munge/socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={area}/state
SlurmdSpoolDir={area}/spool
SlurmctldPidFile={area}/slurmctld.pid
SlurmdPidFile={area}/slurmd.pid
SlurmctldLogFile={area}/slurmctld.log
SlurmdLogFile={area}/slurmd.log
SlurmctldPort={port}
SlurmdPort={other_port}
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PATH"] += ":/usr/sbin"
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing or os.getuid() != 0:
            raise unittest.SkipTest(f"Slurm is not here ({', '.join(missing)})" if missing else "only root can start Slurm's daemons")
        cls.area = pathlib.Path(tempfile.mkdtemp(prefix="weft-slurm-"))
        cls.daemons = []
        cls.addClassCleanup(cls.stop)
        for name in ("munge", "state", "spool"):
            (cls.area / name).mkdir(mode=0o711)
        cls.area.chmod(0o711)
        key = cls.area / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        port, other_port = free_ports(2)
        configuration = cls.area / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], area=cls.area, port=port, other_port=other_port))
        cls.env = clean_environment(SLURM_CONF=str(configuration))
        munge = cls.area / "munge"
        cls.start("munged", "--foreground", f"--socket={munge}/socket", f"--key-file={key}", f"--pid-file={munge}/pid",
                  f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        harness.wait_until((munge / "socket").exists, "munged is up")
        cls.start("slurmctld", "-D", "-c")
        cls.start("slurmd", "-D")
        harness.wait_until(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], env=cls.env, capture_output=True, text=True).stdout,
                           "the node is idle")

    @classmethod
    def start(cls, *words):
        with open(cls.area / f"{words[0]}.out", "w") as out:
            cls.daemons.append(subprocess.Popen(words, env=cls.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    @classmethod
    def stop(cls):
        for daemon in reversed(cls.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(cls.area)

    def srun(self, *words):
        return subprocess.run(["srun", "--quiet", "--overcommit", *map(str, words)], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=5 * harness.DEADLINE)

    def kinds(self):
        """Of --mpi that work here: pmix needs a library that only the development package brings."""
        kinds = ["pmi2"]
        pmix = self.srun("-n", 1, "--mpi=pmix", "true")
        if pmix.returncode == 0:
            kinds.append("pmix")
        else:
            print(f"srun --mpi=pmix does not work here: {pmix.stderr.splitlines()[:1]}")
        return kinds

    def test_ranks_meet(self):
        for kind in self.kinds():
            for ranks, program in ((2, "modes"), (4, "collectives"), (2, "large"), (2, "grandchild")):
                with self.subTest(kind=kind, program=program):
                    r = self.srun("-n", ranks, f"--mpi={kind}", f"{PROGRAMS}/{program}")
                    self.assertEqual(r.returncode, 0, r)

    def test_abort_and_killed_ranks(self):
        for kind in self.kinds():
            with self.subTest(kind):
                r = self.srun("-n", 2, f"--mpi={kind}", STUCK, "abort")
                self.assertNotEqual(r.returncode, 0)
                self.assertIn("aborted with code 7", r.stderr)
                r = self.srun("-K", "-n", 2, f"--mpi={kind}", "sh", "-c",
                              f"test $SLURM_PROCID = 1 && exec timeout -s KILL 1 {STUCK} many; exec {STUCK} many")
                self.assertNotEqual(r.returncode, 0)

    def test_without_a_bootstrap_it_is_an_error(self):
        r = self.srun("-n", 2, "--mpi=none", f"{PROGRAMS}/modes")
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("use srun --mpi=pmi2, srun --mpi=pmix, or Weft's mpiexec", r.stderr)

    def test_mpiexec_in_an_allocation(self):
        show = "echo $WEFT_RANK/$WEFT_SIZE"
        r = subprocess.run(["salloc", "--quiet", "-n", "2", MPIEXEC, "sh", "-c", show], env=self.env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=5 * harness.DEADLINE)
        self.assertEqual((r.returncode, sorted(r.stdout.split())), (0, ["0/2", "1/2"]), r)
        r = self.srun("-n", 1, "--mpi=pmi2", MPIEXEC, "-n", 3, f"{PROGRAMS}/modes")
        self.assertEqual(r.returncode, 0, r)


if __name__ == "__main__":
    harness.main()
