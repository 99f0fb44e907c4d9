"""WEFT_COUNTERS=1: each rank tells by which ways its messages went, and the ways add up."""
import json
import os
import re
import subprocess
import unittest

from harness import LaunchTest

PROGRAMS = os.environ.get("WEFT_PROGRAMS", "")  # folder of the multi-rank programs
WEFT = os.environ.get("WEFT_COMMAND", "weft")


class Counters(LaunchTest):
    def counted(self, ranks, *program, **env):
        """The sums over all ranks, by name."""
        r = self.good("-n", ranks, f"{PROGRAMS}/{program[0]}", *program[1:], env={"WEFT_COUNTERS": "1", **env})
        lines = re.findall(r"weft: rank (\d+): (.*)", r.err)
        self.assertEqual(sorted(int(rank) for rank, _ in lines), list(range(ranks)), r)
        sums = {}
        for _, line in lines:
            for name, value in re.findall(r"(\w+)=(\d+)", line):
                sums[name] = sums.get(name, 0) + int(value)
        return sums

    def test_every_rendezvous_is_received_by_one_mover(self):
        for wire in ("shm", "sock", "mixed"):
            sums = self.counted(3, "fuzz", 1, 40, WEFT_WIRE=wire, WEFT_NODE_RANKS="2", CHECK_MEMORY="amaam")
            received = sum(value for name, value in sums.items() if name.startswith("received_"))
            self.assertEqual(received, sums.get("sent_large", 0), sums)
            self.assertEqual("received_mapped_get" in sums, wire != "sock", sums)

    def test_inline_messages_are_counted_on_the_short_path_too(self):
        more, fewer = (self.counted(2, "ring", hops)["sent_inline"] for hops in (3000, 1000))
        self.assertEqual(more - fewer, 2000)

    def test_each_name_is_explained(self):
        explained = json.loads(subprocess.run([WEFT, "info", "--counters", "--json"], capture_output=True, text=True, check=True).stdout)
        sums = self.counted(2, "fuzz", 1, 10, CHECK_MEMORY="a")
        self.assertLessEqual(set(sums), set(explained["counters"]))


if __name__ == "__main__":
    unittest.main()
