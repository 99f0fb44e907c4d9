"""What mpiexec says of a job that ran into its time limit: for every rank, what it waits for."""
import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import LaunchTest

STUCK = os.environ.get("WEFT_STUCK", "stuck")
LIMIT_S = 4  # time to get stuck in, also on a busy machine


class TimeLimit(LaunchTest):
    def stuck(self, way, ranks, env=None, on=None):
        """Lines said of each rank, its own line first."""
        r = self.run_job("--timeout", LIMIT_S, "-n", ranks, STUCK, way, env=env,
                         preexec_fn=(lambda: os.sched_setaffinity(0, on)) if on else None)
        self.assertEqual(r.status, 124, r)
        self.assertIn(f"mpiexec: the job ran into its time limit of {LIMIT_S} s; ending it. What its ranks do:\n", r.err)
        said = {}
        for line in r.err.splitlines()[1:]:
            if found := re.match(r"mpiexec: rank (\d+) \(pid \d+\) (.*)", line):
                rank = int(found[1])
                said.setdefault(rank, []).append(found[2])
            else:
                said[rank].append(line.removeprefix("mpiexec:     "))
        self.assertEqual(sorted(said), list(range(ranks)), r)
        return said

    def test_wrong_tags_and_a_rank_that_computes(self):
        said = self.stuck("wrong_tags", 3)
        for rank in range(2):
            self.assertEqual(said[rank][1:], [
                f"pending: receive from rank {1 - rank}, tag 7, up to 4 bytes, MPI_COMM_WORLD",
                f"arrived, not received: message from rank {1 - rank}, tag 8, 4 bytes, MPI_COMM_WORLD"])
            found = re.fullmatch(r"is in MPI_Recv for (\d+\.\d) s, called at (.*)\+(0x[0-9a-f]+)", said[rank][0])
            self.assertTrue(found, said[rank])
            self.assertLess(0.5, float(found[1]))
            self.assertLess(float(found[1]), harness.DEADLINE)
            self.assertTrue(os.path.samefile(found[2], STUCK))
            if shutil.which("addr2line"):
                function = subprocess.run(["addr2line", "-f", "-e", found[2], found[3]], capture_output=True, text=True).stdout
                self.assertEqual(function.split()[0], "wrong_tags")
        # Beside other load it may not get half a CPU.
        self.assertRegex(said[2][0], r"^(does not wait in MPI: it computes|did not get to answer: it is ready to run, but other processes have "
                         r"the CPUs); it used \d+ % of a CPU while it was asked$")
        self.assertEqual(len(said[2]), 1)

    def test_many_requests_are_counted(self):
        said = self.stuck("many", 1)[0]
        self.assertRegex(said[0], r"^is in MPI_Waitall for ")
        receives = [line for line in said if line.startswith("pending: receive from any rank")]
        self.assertIn("pending: receive from any rank, any tag, up to 1 bytes, MPI_COMM_WORLD", receives)
        self.assertEqual(said[-1], f"pending: and {30 - len(receives)} more")
        self.assertGreaterEqual(len(receives), 10)

    def test_sends(self):
        said = self.stuck("sends", 4)
        self.assertRegex(said[0][0], r"^is in MPI_Probe for ")
        self.assertEqual(said[0][1], "pending: probe for a message from any rank, tag 99, MPI_COMM_WORLD")
        for line in ("message from rank 1, tag 1, 100 bytes, MPI_COMM_WORLD", "message from rank 2, tag 2, 2097152 bytes, MPI_COMM_WORLD"):
            self.assertIn("arrived, not received: " + line, said[0])
        self.assertRegex(said[1][0], r"^is in MPI_Ssend for ")
        self.assertEqual(said[1][1], "pending: synchronous send to rank 0, tag 1, 100 bytes, MPI_COMM_WORLD")
        # Rank 3 is the first of the odd ones, and sends to itself.
        self.assertRegex(said[2][0], r"^is in MPI_Send for ")
        self.assertEqual(said[2][1:], ["pending: send to rank 0, tag 2, 2097152 bytes, MPI_COMM_WORLD"])
        self.assertRegex(said[3][0], r"^is in MPI_Wait for ")
        self.assertIn("pending: synchronous send to rank 0 (3 in the world), tag 3, 3 bytes, halo", said[3])
        self.assertIn("arrived, not received: message from rank 0 (3 in the world), tag 3, 3 bytes, halo", said[3])

    def test_collectives(self):
        said = self.stuck("collectives", 3)
        self.assertRegex(said[0][0], r"^is in MPI_Recv for ")
        for rank in (1, 2):
            self.assertRegex(said[rank][0], r"^is in MPI_Bcast for ")
            self.assertRegex(said[rank][1], r"^pending: receive from rank \d, inside collective \d+, up to 40 bytes, MPI_COMM_WORLD$")

    def test_every_thread_that_waits(self):
        said = self.stuck("threads", 1)[0]
        self.assertEqual(len([line for line in said if line.startswith("is in MPI_Recv for ")]), 2, said)
        for tag in (11, 12):
            self.assertEqual(said.count(f"pending: receive from rank 0, tag {tag}, up to 1 bytes, MPI_COMM_WORLD"), 1, said)

    def test_polling(self):
        for call in ("MPI_Test", "MPI_Testall", "MPI_Improbe", "MPI_Parrived"):
            said = self.stuck(call, 1)[0]
            self.assertRegex(said[0], rf"^is in {call} again and again for \d\.\d s, called at ")
            if call.startswith("MPI_Test"):
                self.assertEqual(said[1:], ["pending: receive from rank 0, tag 1, up to 1 bytes, MPI_COMM_WORLD"])
            if call == "MPI_Improbe":
                self.assertEqual(said[1:], ["pending: probe for a message from rank 0, tag 1, MPI_COMM_WORLD"])

    def test_a_rank_that_never_sleeps_answers(self):
        said = self.stuck("finalize", 2, env={"WEFT_SLEEP_MS": "1000000"})
        self.assertRegex(said[0][0], r"^is in MPI_Recv for ")
        self.assertRegex(said[1][0], r"^is in MPI_Finalize for ")
        self.assertEqual(said[1][1:], ["pending: receive from rank 0, inside MPI_Finalize, up to 0 bytes, MPI_COMM_WORLD"])

    def test_probes(self):
        said = self.stuck("probes", 3)
        self.assertEqual(said[0][1:], ["pending: probe for a message from rank 2, any tag, MPI_COMM_WORLD"])
        self.assertEqual(said[1][1:], ["pending: probe for a message from rank 0 (1 in the world), tag 4, halo"])
        self.assertRegex(said[2][0], r"^is in MPI_Iprobe again and again for ")
        self.assertEqual(said[2][1:], ["pending: probe for a message from rank 1, tag 5, MPI_COMM_WORLD"])

    def test_a_stopped_rank(self):
        said = self.stuck("stopped", 2)
        self.assertRegex(said[0][0], r"^is in MPI_Recv for ")
        self.assertEqual(said[1], ["is stopped (by SIGSTOP, a terminal or a debugger), so it cannot say what it does; SIGCONT lets it go on"])

    def test_a_sleeping_rank(self):
        said = self.stuck("asleep", 2)
        self.assertRegex(said[1][0], r"^does not wait in MPI: it sleeps, or waits for something else; it used [0-9] % of a CPU while")

    def test_a_starved_rank(self):
        """Everything on one CPU, and the rank that computes gives way to all others there. Each hog has a session of its own, as the
        rank may have: the kernel shares the CPU among sessions, whatever is nice within them."""
        cpu = {min(os.sched_getaffinity(0))}
        hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=lambda: os.sched_setaffinity(0, cpu), start_new_session=True)
                for _ in range(12)]
        self.addCleanup(lambda: [(hog.kill(), hog.wait()) for hog in hogs])
        said = self.stuck("starved", 1, on=cpu)[0]
        self.assertRegex(said[0], r"^did not get to answer: it is ready to run, but other processes have the CPUs; it used \d+ % of a CPU while")

    def test_after_finalize(self):
        self.assertEqual(self.stuck("over", 1)[0], ["has called MPI_Finalize"])

    def test_without_mpi(self):
        r = self.run_job("-n", 2, "sh", "-c", "test $WEFT_RANK = 1 || sleep 300", env={"MPIEXEC_TIMEOUT": "1"})
        self.assertEqual(r.status, 124)
        self.assertRegex(r.err, r"rank 0 \(pid \d+\) has not called MPI_Init\n")
        self.assertRegex(r.err, r"rank 1 \(pid \d+\) has ended\n")


if __name__ == "__main__":
    harness.main()
