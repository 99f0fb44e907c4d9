"""Other launchers that work: a PMI-1 server in miniature, and Hydra where it is installed."""
import glob
import os
import pathlib
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import harness
from harness import PROBE, LaunchTest, clean_environment
from test_boot import fields


class Server:
    """Speaks the launcher's side of the PMI-1 wire protocol to `size` processes that it starts."""

    def __init__(self, size, *words, change=lambda command, answer: answer, env=lambda rank: {}, wrapper=()):
        self.size, self.change = size, change
        self.kvs, self.in_barrier, self.aborts, self.finalized, self.questions = {}, [], [], 0, []
        self.selector = selectors.DefaultSelector()
        self.processes = []
        self.sockets = []
        for rank in range(size):
            ours, theirs = socket.socketpair()
            variables = clean_environment(PMI_FD=str(theirs.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(size))
            variables.update(env(rank))
            self.processes.append(subprocess.Popen([*wrapper, PROBE, *words], env=variables, pass_fds=[theirs.fileno()],
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            theirs.close()
            self.sockets.append(ours)
            self.selector.register(ours, selectors.EVENT_READ)

    def answer(self, sock, line):
        words = dict(w.split("=", 1) for w in line.split() if "=" in w)
        command = words["cmd"]
        self.questions.append(command)
        if command == "init":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
        if command == "get_my_kvsname":
            return "cmd=my_kvsname kvsname=kvs_1_0\n"
        if command == "get_appnum":
            return "cmd=appnum appnum=3\n"
        if command == "get_universe_size":
            return "cmd=universe_size size=16\n"
        if command == "put":
            self.kvs[words["key"]] = words["value"]
            return "cmd=put_result rc=0 msg=success\n"
        if command == "get":
            if words["key"] not in self.kvs:
                return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
            return f"cmd=get_result rc=0 msg=success value={self.kvs[words['key']]}\n"
        if command == "barrier_in":
            self.in_barrier.append(sock)
            if len(self.in_barrier) == self.size:
                for s in self.in_barrier:
                    s.sendall(self.change("barrier_in", "cmd=barrier_out\n").encode())
                self.in_barrier = []
            return ""
        if command == "finalize":
            self.finalized += 1
            return "cmd=finalize_ack\n"
        if command == "abort":
            self.aborts.append(line)
            for p in self.processes:
                p.terminate()
            return ""
        raise AssertionError(f"not a PMI-1 command: {line!r}")

    def serve(self):
        while self.selector.get_map():
            events = self.selector.select(harness.DEADLINE)
            if not events:
                break
            for key, _ in events:
                data = b""
                try:
                    data = key.fileobj.recv(65536)
                    for line in data.decode().splitlines():
                        text = self.change(line.split()[0][4:], self.answer(key.fileobj, line))
                        if text:
                            key.fileobj.sendall(text.encode())
                except OSError:
                    data = b""
                if not data:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
        results = []
        for p in self.processes:
            try:
                out, err = p.communicate(timeout=harness.DEADLINE)
            except subprocess.TimeoutExpired:
                p.kill()
                out, err = p.communicate()
                err += "did not end"
            results.append((p.returncode, out, err))
        return results


class Pmi(unittest.TestCase):
    def test_ranks_meet(self):
        for size in (1, 2, 5):
            with self.subTest(size):
                server = Server(size, "attach", "barrier", "key", "finalize")
                results = server.serve()
                self.assertEqual([(code, err) for code, _, err in results], [(0, "")] * size)
                self.assertEqual(server.finalized, size)
                keys = {line for _, out, _ in results for line in out.splitlines() if line.startswith("key=")}
                self.assertEqual(len(keys), 1)
                self.assertNotEqual(keys, {"key=" + "0" * 64})
                for rank, (_, out, _) in enumerate(results):
                    f = fields(out)
                    self.assertEqual((f["rank"], f["size"], f["appnum"], f["universe"], f["singleton"]),
                                     (str(rank), str(size), "3", "16", "0"))

    def test_abort_is_told(self):
        server = Server(2, "attach", "barrier", "@1:abort=6", "sleep=300")
        results = server.serve()
        self.assertEqual(len(server.aborts), 1)
        self.assertIn("exitcode=6", server.aborts[0])
        self.assertEqual(results[0][0], -15)

    def test_child_of_a_rank_runs_alone(self):
        server = Server(2, "attach", "barrier", f"run=sh -c '{PROBE} attach'", "finalize", env=lambda rank: {"SLURM_STEP_NUM_TASKS": "2"})
        for code, out, err in server.serve():
            self.assertEqual(code, 0, err)
            rank, child = map(fields, out.splitlines())
            self.assertEqual((rank["size"], child["size"], child["singleton"]), ("2", "1", "1"))
            self.assertIn(f"weft: process {child['pid']} is a child of process {rank['pid']}, which has started MPI itself", err)

    def test_a_wrapper_that_drops_the_descriptor_is_no_rank(self):
        # What it starts would be as many worlds of one rank as there are ranks.
        code = f"import subprocess, sys; sys.exit(subprocess.run(['{PROBE}', 'attach'], close_fds=True).returncode)"
        ours, theirs = socket.socketpair()
        r = subprocess.run([sys.executable, "-c", code], env=clean_environment(PMI_FD=str(theirs.fileno()), PMI_RANK="1", PMI_SIZE="2"),
                           pass_fds=[theirs.fileno()], capture_output=True, text=True, timeout=harness.DEADLINE)
        ours.close()
        theirs.close()
        self.assertEqual(r.returncode, 77, r)
        self.assertIn("PMI_SIZE is above 1", r.stderr)

    def test_another_machine_is_fatal_and_explained(self):
        # Rank 0 publishes where it is; the others see another place.
        def change(command, answer):
            return answer.replace("value=", "value=x") if command == "get" else answer
        server = Server(2, "attach", change=change)
        results = server.serve()
        self.assertIn(results[1][0], (1, -15), results)
        self.assertIn("not on rank 0's machine", results[1][2])
        self.assertEqual(len(server.aborts), 1)

    def test_odd_answers_are_errors_not_crashes(self):
        odd = ("\n", "cmd=\n", "no equals sign\n", "cmd=" + "x" * 5000 + "\n", "cmd=response_to_init rc=-1\n", "\0\0\0\n",
               "cmd=get_result rc=0 value=a!b\n", "cmd=get_result rc=0 value=" + "y" * 300 + "\n",
               "cmd=my_kvsname kvsname=" + "k" * 1000 + "\n", "cmd=init\ncmd=init\n")
        for target in ("init", "get_my_kvsname", "get"):
            for text in odd:
                with self.subTest(f"{target}: {text[:30]!r}"):
                    server = Server(2, "attach", "finalize",
                                    change=lambda command, answer: text if command == target else answer)
                    results = server.serve()
                    # Rank 1 asks all three questions; an error is its explained exit, or the end that another's abort brings.
                    self.assertIn(results[1][0], (1, 77, -15), results)

    def test_half_an_answer_or_none(self):
        """Init ends within its time with an explanation; here that time is short."""
        quick = lambda rank: {"WEFT_LAUNCHER_TIMEOUT": "3"}
        for target, step in (("init", "init"), ("get_my_kvsname", "get_my_kvsname"), ("put", "put"), ("barrier_in", "barrier_in"), ("get", "get")):
            for kind, text in (("no", ""), ("half an", "cmd=")):
                if (target, kind) == ("barrier_in", "no"):
                    continue
                with self.subTest(f"{kind} answer to {target}"):
                    server = Server(2, "attach", env=quick, change=lambda command, answer: text if command == target else answer)
                    results = server.serve()
                    self.assertTrue(all(code in (1, 77, -15) for code, _, _ in results), results)
                    self.assertIn(f"the launcher behind PMI_FD gave {kind} answer to {step} within 3 s (WEFT_LAUNCHER_TIMEOUT sets that time)",
                                  results[0][2] + results[1][2])

    def test_half_a_farewell(self):
        server = Server(1, "attach", "finalize", env=lambda rank: {"WEFT_LAUNCHER_TIMEOUT": "1"},
                        change=lambda command, answer: "cmd=fin" if command == "finalize" else answer)
        (code, _, err), = server.serve()
        self.assertEqual((code, err), (0, ""))

    def test_a_late_rank_is_waited_for_and_told(self):
        server = Server(2, "@1:sleep=9", "attach", "barrier", "finalize", env=lambda rank: {"WEFT_LAUNCHER_TIMEOUT": "3", "WEFT_RANK_OF_TEST": str(rank)})
        results = server.serve()
        self.assertEqual([code for code, _, _ in results], [0, 0], results)
        self.assertRegex(results[0][2], r"^weft: process \d+ waits in MPI_Init for the launcher's barrier since 3 s: have all ranks come to MPI_Init\?\n$")
        self.assertEqual(results[1][2], "")

    def test_a_stranger_at_the_exchange(self):
        # It knows the name and says nothing; rank 0 turns to the next after its time.
        def change(command, answer):
            if command == "get":
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.connect("\0" + answer.split("!")[1])
                self.addCleanup(s.close)
            return answer
        server = Server(2, "attach", "barrier", "finalize", change=change, env=lambda rank: {"WEFT_LAUNCHER_TIMEOUT": "3"})
        self.assertEqual([(code, err) for code, _, err in server.serve()], [(0, "")] * 2)

    def test_dead_server(self):
        server = Server(1, "attach")
        for s in server.sockets:
            server.selector.unregister(s)
            s.close()
        (code, _, err), = server.serve()
        self.assertEqual(code, 77)
        self.assertIn("PMI_FD", err)

    def test_missing_rank(self):
        server = Server(1, "attach", env=lambda rank: {"PMI_RANK": "7"})
        (code, _, err), = server.serve()
        self.assertEqual(code, 77)
        self.assertIn("PMI_RANK", err)


FAKE_PMIX = os.environ.get("WEFT_FAKE_PMIX", "libpmix.so.2")
PEERS = os.environ.get("WEFT_PEERS", str(pathlib.Path(__file__).parents[2] / "venvs"))


def hydras():
    peers = PEERS
    return sorted(set(glob.glob(f"{peers}/*/bin/mpiexec.hydra")) | {shutil.which("mpiexec.hydra")} - {None})


@unittest.skipUnless(hydras(), "no Hydra installed: `make peers` installs two, or set WEFT_PEERS")
class Hydra(LaunchTest):
    def run_hydra(self, hydra, *words):
        return subprocess.run([hydra, *map(str, words)], env=clean_environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=harness.DEADLINE)

    def test_ranks_meet(self):
        for hydra in hydras():
            with self.subTest(hydra):
                r = self.run_hydra(hydra, "-n", 3, PROBE, "attach", "barrier", "finalize")
                self.assertEqual(r.returncode, 0, r)
                self.assertEqual(sorted(fields(line)["rank"] for line in r.stdout.splitlines()), ["0", "1", "2"])
                self.assertEqual({fields(line)["size"] for line in r.stdout.splitlines()}, {"3"})

    def test_abort(self):
        for hydra in hydras():
            with self.subTest(hydra):
                r = self.run_hydra(hydra, "-n", 2, PROBE, "attach", "barrier", "@1:abort=5", "sleep=300")
                self.assertEqual(r.returncode, 5, r)


class PmixMissing(unittest.TestCase):
    def test_fatal_and_explained(self):
        # A PMIx library that is here leaks a little when it fails, which a sanitizer would report in our name.
        env = clean_environment(PMIX_NAMESPACE="weft-test.1", PMIX_RANK="0", ASAN_OPTIONS="detect_leaks=0")
        r = subprocess.run([PROBE, "attach"], env=env,
                           capture_output=True, text=True, timeout=harness.DEADLINE)
        self.assertEqual(r.returncode, 77, r)
        self.assertIn("PMIX_NAMESPACE", r.stderr)
        self.assertIn("mpiexec", r.stderr)


class PmixThatDoesNotAnswer(LaunchTest):
    """A server of PMIx in miniature, which has its own ways."""

    def probe(self, rank, size, *words, **variables):
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(f"{d}/lib")
            shutil.copy(FAKE_PMIX, f"{d}/lib/libpmix.so.2")
            env = clean_environment(PMIX_NAMESPACE=f"fake-{os.getpid()}", PMIX_RANK=str(rank), PMIX_PREFIX=d, FAKE_PMIX_SIZE=str(size),
                                    WEFT_LAUNCHER_TIMEOUT="1", ASAN_OPTIONS="detect_leaks=0", **variables)
            return subprocess.run([PROBE, "attach", *words], env=env, capture_output=True, text=True, timeout=harness.DEADLINE)

    def test_answers(self):
        r = self.probe(0, 1, "finalize")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        seen = fields(r.stdout)
        self.assertEqual((seen["rank"], seen["size"], seen["appnum"], seen["universe"], seen["singleton"]), ("0", "1", "4", "1", "0"))

    def test_silence_is_an_error_that_names_the_question(self):
        for key, rank, status in (("pmix.job.size", 0, 77), ("pmix.appnum", 0, 77), ("pmix.univ.size", 1, 77), ("weft-meeting", 1, 1)):
            with self.subTest(key):
                r = self.probe(rank, 2, FAKE_PMIX_SILENT=key)
                self.assertEqual(r.returncode, status, r)
                self.assertIn(f"gave no answer to PMIx_Get of {key} within 1 s (WEFT_LAUNCHER_TIMEOUT sets that time)", r.stderr)
                self.assertNotIn("aborted", r.stderr)   # that would wait as well

    def test_refusal(self):
        r = self.probe(1, 2)   # nobody has published where to meet
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("does not answer weft-meeting (status -46)", r.stderr)
        self.assertIn("fake launcher: aborted with 1", r.stderr)

    def test_slow_fence_is_told_and_waited_for(self):
        r = self.probe(0, 1, "finalize", FAKE_PMIX_SLOW="3")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(r.stderr.count("waits in MPI_Init for an answer to PMIx_Fence since 1 s"), 1, r)

    def test_silent_fence_is_told(self):
        with self.assertRaises(subprocess.TimeoutExpired) as raised, unittest.mock.patch.object(harness, "DEADLINE", 5):
            self.probe(0, 1, FAKE_PMIX_SILENT="fence")
        self.assertIn("waits in MPI_Init for an answer to PMIx_Fence since 1 s", str(raised.exception.stderr))


def open_mpi():
    """Open MPI's mpiexec, which is PRRTE; a libpmix.so.2 comes with it."""
    found = sorted(glob.glob(f"{PEERS}/openmpi*/bin/mpiexec"))
    return found[0] if found else shutil.which("mpirun.openmpi")


@unittest.skipUnless(open_mpi(), "no Open MPI installed: `make peers` does it, or set WEFT_PEERS")
class Pmix(LaunchTest):
    def run_prte(self, *words):
        return subprocess.run([open_mpi(), "--allow-run-as-root", "--oversubscribe", *map(str, words)],
                              env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=harness.DEADLINE)

    def test_ranks_meet(self):
        r = self.run_prte("-n", 2, PROBE, "attach", "barrier", "finalize", ":", "-n", 1, PROBE, "attach", "barrier", "finalize")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        seen = sorted((f["rank"], f["size"], f["appnum"], f["singleton"]) for f in map(fields, r.stdout.splitlines()))
        self.assertEqual(seen, [("0", "3", "0", "0"), ("1", "3", "0", "0"), ("2", "3", "1", "0")])

    def test_abort(self):
        r = self.run_prte("-n", 2, PROBE, "attach", "barrier", "@1:abort=5", "sleep=300")
        self.assertEqual(r.returncode, 5, r)
        self.assertIn("weft: rank 1: aborted with code 5", r.stderr)

    def test_child_of_a_rank_runs_alone(self):
        r = self.run_prte("-n", 2, PROBE, "attach", "barrier", "run=" + PROBE + " attach finalize", "barrier", "finalize")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(sorted(fields(line)["singleton"] for line in r.stdout.splitlines()), ["0", "0", "1", "1"], r)
        self.assertEqual(r.stderr.count("it runs alone"), 2, r)


if __name__ == "__main__":
    harness.main()
