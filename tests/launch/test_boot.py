"""Who am I: the job as ranks see it, processes that are no rank of their own, other launchers."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import MPIEXEC, PROBE, LaunchTest, clean_environment


def fields(line):
    return dict(word.split("=", 1) for word in line.split())


def alone(*words, env=None, **how):
    return subprocess.run([PROBE, *words], env=clean_environment(**(env or {})), capture_output=True, text=True,
                          timeout=harness.DEADLINE, **how)


class Job(LaunchTest):
    def test_programs_and_ranks(self):
        r = self.good("-n", 2, PROBE, "attach", "barrier", "finalize", ":", "-n", 1, PROBE, "attach", "barrier", "finalize")
        ranks = sorted((fields(line) for line in r.out.splitlines()), key=lambda f: int(f["rank"]))
        self.assertEqual([f["appnum"] for f in ranks], ["0", "0", "1"])
        self.assertEqual({f["size"] for f in ranks}, {"3"})
        self.assertEqual({f["singleton"] for f in ranks}, {"0"})

    def test_info(self):
        r = self.good("-n", 1, "-wdir", "/", "--soft", "1", PROBE, "attach", "info=command", "info=maxprocs", "info=wdir",
                      "info=host", "info=argv", "info=soft", "finalize")
        self.assertIn(f"command={PROBE}\nmaxprocs=1\nwdir=/\nhost={socket.gethostname()}\nargv=attach", r.out)
        self.assertIn("soft=1\n", r.out)

    def test_info_before_attach(self):
        """The same as after it, whatever the words look like."""
        odd = "a&b=c%41%,\n \x01\u00e9"
        r = self.good("-n", 1, PROBE, "info=command", "info=argv", "info=maxprocs", "attach", "info=command", "info=argv", "info=maxprocs",
                      "finalize", "say=" + odd)
        line = f"info=command info=argv info=maxprocs attach info=command info=argv info=maxprocs finalize say={odd}"
        told = f"command={PROBE}\nargv={line}\nmaxprocs=1\n"
        self.assertEqual(r.out.count(told), 2, r)
        # A value that does not fit is left out.
        r = self.good("-n", 1, PROBE, "info=maxprocs", "info=argv", "say=" + "x" * 5000)
        self.assertTrue(r.out.startswith("maxprocs=1\nargv=-\n"))
        self.assertEqual(alone("info=command").stdout, "command=-\n")

    def test_attach_again(self):
        r = self.good("-n", 2, PROBE, *("attach", "barrier", "finalize", "detach") * 3)
        generations = sorted(fields(line)["generation"] for line in r.out.splitlines())
        self.assertEqual(generations, ["0", "0", "1", "1", "2", "2"], r)

    def test_ranks_share_a_key_that_is_new_each_time(self):
        for job in range(2):
            r = self.good("-n", 3, PROBE, *("attach", "key", "barrier", "finalize", "detach") * 3)
            keys = sorted(line for line in r.out.splitlines() if line.startswith("key="))
            self.assertEqual([keys.count(key) for key in keys], [3] * 9, r)
            self.assertTrue(all(len(set(key[4:])) > 4 and len(key) == 4 + 64 for key in keys), r)
        r = alone("attach", "key")
        self.assertIn("key=" + "0" * 64, r.stdout)

    def test_many_ranks(self):
        r = self.good("-n", 40, PROBE, "attach", "barrier", "finalize")
        self.assertEqual(sorted(int(fields(line)["rank"]) for line in r.out.splitlines()), list(range(40)))


class Descendants(LaunchTest):
    def test_child_of_a_running_rank(self):
        r = self.good("-n", 2, PROBE, "attach", "barrier", f"run={PROBE} attach finalize", "barrier", "finalize")
        self.assertEqual(sorted(fields(line)["singleton"] for line in r.out.splitlines()), ["0", "0", "1", "1"], r)
        self.assertEqual(r.err.count("it runs alone"), 2, r)

    def test_descriptor_was_closed(self):
        code = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], close_fds=True).returncode)"
        r = self.good("-n", 2, sys.executable, "-c", code, PROBE, "attach", "barrier", "finalize")
        self.assertEqual({fields(line)["size"] for line in r.out.splitlines()}, {"2"}, r)

    def test_descriptor_number_means_something_else(self):
        code = ("import os, sys\n"
                "fd = int(os.environ['WEFT_BOOT_FD'].split(':')[0])\n"
                "import socket; a, b = socket.socketpair(); os.dup2(a.fileno(), fd); os.set_inheritable(fd, True)\n"
                "os.execv(sys.argv[1], sys.argv[1:])")
        r = self.good("-n", 2, sys.executable, "-c", code, PROBE, "attach", "barrier", "finalize")
        self.assertEqual({fields(line)["size"] for line in r.out.splitlines()}, {"2"}, r)

    def test_child_of_a_rank_runs_alone(self):
        r = self.good("-n", 2, "sh", "-c", f"{PROBE} attach barrier finalize && {PROBE} attach finalize")
        seen = sorted((fields(line)["size"], fields(line)["singleton"]) for line in r.out.splitlines())
        self.assertEqual(seen, [("1", "1")] * 2 + [("2", "0")] * 2, r)
        self.assertEqual(r.err.count("it runs alone"), 2, r)
        self.assertEqual(r.err.count("\n"), 2, r)

    def test_two_at_once_never_mix(self):
        # Both children share the inherited socket; exactly one of them becomes the rank.
        r = self.good("-n", 1, "sh", "-c", f"{PROBE} attach sleep=0.3 finalize & {PROBE} attach sleep=0.3 finalize; wait")
        self.assertEqual(sorted(fields(line)["singleton"] for line in r.out.splitlines()), ["0", "1"], r)

    @unittest.skipUnless(os.getuid() == 0, "NOT TESTED: a rank of another user needs root")
    def test_another_user_is_refused_and_told(self):
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            probe = shutil.copy(PROBE, place)
            why = "mpiexec runs as user 0 and this process as user 54321, and they do not trust each other"
            drop = ["setpriv", "--reuid", "54321", "--clear-groups"]
            by_name = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], close_fds=True).returncode)"]
            for prefix in (drop, [*by_name, *drop]):
                r = self.run_job("-n", 1, *prefix, probe, "attach")
                self.assertEqual(r.status, 77, r)
                self.assertIn(why, r.err)
            # Seen from mpiexec's side alone.
            code = ("import os, socket\n"
                    "name, magic = os.environ['WEFT_BOOT_ADDR'], 0x57465435\n"
                    "os.setuid(54321)\n"
                    "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                    "s.connect('\\0' + name)\n"
                    "assert s.recv(100)[:8] == bytes.fromhex('35544657') + (8).to_bytes(4, 'little')\n")
            self.good("-n", 1, sys.executable, "-c", code)

    def test_wrong_cookie_is_refused(self):
        code = "import os, sys; os.environ['WEFT_COOKIE'] = 'x' * 32; os.execv(sys.argv[1], sys.argv[1:])"
        r = self.run_job("-n", 1, sys.executable, "-c", code, PROBE, "attach")
        self.assertEqual(r.status, 77, r)
        self.assertIn("WEFT_RANK or WEFT_COOKIE is not of the job whose mpiexec is at WEFT_BOOT_ADDR", r.err)

    def test_strangers_do_no_harm(self):
        # Noise on the listening socket, and connections that never say anything.
        code = ("import os, socket, subprocess, sys\n"
                "keep = []\n"
                "for i in range(20):\n"
                "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                "    s.connect('\\0' + os.environ['WEFT_BOOT_ADDR'])\n"
                "    if i % 2: s.send(os.urandom(1 + 37 * i))\n"
                "    keep.append(s)\n"
                "sys.exit(subprocess.run(sys.argv[1:]).returncode)")
        r = self.good("-n", 1, sys.executable, "-c", code, PROBE, "attach", "finalize")
        self.assertIn("rank=0 size=1", r.out)


class Noise(LaunchTest):
    """What reaches mpiexec's sockets is not all from well-behaved ranks."""
    noisy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "noisy_rank.py")

    def seed(self):
        return int(os.environ.get("WEFT_SEED", time.time_ns() % 1_000_000))

    def test_at_the_door(self):
        seed = self.seed()
        for i in range(3):
            with self.subTest(seed=seed + i):
                r = self.good("-n", 2, sys.executable, self.noisy, seed + i, PROBE, "attach", "barrier", "finalize")
                self.assertEqual({fields(line)["size"] for line in r.out.splitlines()}, {"2"}, r)
                self.assertEqual(r.err, "", r)

    def test_between_the_words(self):
        seed = self.seed()
        for i in range(3):
            with self.subTest(seed=seed + i):
                r = self.good("-n", 2, sys.executable, self.noisy, "words", seed + i)
                self.assertEqual(r.out, "finalized\n" * 2, r)


class Nested(LaunchTest):
    def test_jobs_in_a_job(self):
        r = self.good("-n", 2, MPIEXEC, "-n", 2, PROBE, "attach", "barrier", "finalize")
        seen = sorted((fields(line)["rank"], fields(line)["size"]) for line in r.out.splitlines())
        self.assertEqual(seen, [("0", "2")] * 2 + [("1", "2")] * 2, r)


class Alone(unittest.TestCase):
    def test_singleton(self):
        r = alone("attach", "finalize")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("rank=0 size=1 appnum=-1", r.stdout)
        self.assertIn("singleton=1", r.stdout)

    def test_in_a_batch_allocation(self):
        r = alone("attach", env={"SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"})
        self.assertEqual(r.returncode, 0, r)

    def test_slurm_step_of_one_task(self):
        self.assertEqual(alone("attach", env={"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}).returncode, 0)

    def test_firm_evidence_is_fatal_and_explained(self):
        for env in ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, {"OMPI_COMM_WORLD_SIZE": "2"},
                    {"PMI_RANK": "0", "PMI_SIZE": "2"}):
            with self.subTest(env):
                r = alone("attach", env=env)
                self.assertEqual(r.returncode, 77, r)
                self.assertIn(next(n for n in env if n != "PMI_RANK"), r.stderr)
                self.assertIn("mpiexec", r.stderr)

    def test_stale_pmi_descriptor(self):
        self.assertEqual(alone("attach", env={"PMI_FD": "42"}).returncode, 0)

    def test_nonsense_rank(self):
        r = alone("attach", env={"WEFT_RANK": "many"})
        self.assertEqual(r.returncode, 77)
        self.assertIn("WEFT_RANK=many", r.stderr)

    def test_abort_alone(self):
        r = alone("attach", "abort=9")
        self.assertEqual(r.returncode, 9)
        self.assertEqual(r.stderr, "weft: aborted with code 9: the probe was told to\n")


if __name__ == "__main__":
    harness.main()
