"""The Debian package installed for real, beside Debian's MPICH and Open MPI, in a throw-away copy of this machine: an overlay
over the root that vanishes with its mount namespace."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from test_packages import PROGRAM

BUILD = pathlib.Path(os.environ["WEFT_BUILD"])
SOURCE = pathlib.Path(os.environ["WEFT_SOURCE"])
SECONDS = 600
# Copies of the packages of others stay in the build tree: fetched once.
ARCHIVES = BUILD / "apps/debs"
OTHERS = ("mpich", "libmpich-dev", "openmpi-bin", "libopenmpi-dev", "environment-modules")
SETUP = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /proc "$1/root/proc"
mount --rbind /sys "$1/root/sys"
mount --rbind /dev "$1/root/dev"
echo ready
exec sleep 100000
"""
# What dpkg and the loader keep for themselves.
OWN_BOOKS = ("var/lib/dpkg/", "var/log/", "var/cache/", "etc/ld.so.cache", "var/lib/apt/", "tmp/")


class Machine:
    """The copy. `run` runs a shell script in it."""

    def __init__(self):
        self.area = tempfile.mkdtemp(prefix="weft-machine-")
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", SETUP, "sh", self.area], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.why_not = None if self.holder.stdout.readline() == "ready\n" else self.holder.communicate()[1]

    def run(self, script, *arguments, ok=True):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "MPI", "OMPI_", "LD_LIBRARY_PATH"))}
        env.update(DEBIAN_FRONTEND="noninteractive", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        command = ["nsenter", "-t", str(self.holder.pid), "--mount", "chroot", f"{self.area}/root", "sh", "-ec", script, "sh"]
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS, env=env,
                              stdin=subprocess.DEVNULL)
        if ok and done.returncode:
            raise AssertionError(f"{script} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def files(self):
        """What the copy has otherwise than this machine: files by their sizes, links by what they point to, and what is gone."""
        upper = pathlib.Path(f"/proc/{self.holder.pid}/root{self.area}/upper")
        found = {}
        for path in upper.rglob("*"):
            name = path.relative_to(upper).as_posix()
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif not path.is_dir():
                found[name] = path.stat().st_size if path.is_file() else "gone"
        return {name: what for name, what in found.items() if not name.startswith(OWN_BOOKS)}

    def close(self):
        self.holder.kill()
        self.holder.communicate()
        shutil.rmtree(self.area)


class Beside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not all(map(shutil.which, ("dpkg", "unshare", "nsenter", "update-alternatives"))):
            raise unittest.SkipTest("not a Debian system")
        cls.machine = Machine()
        cls.addClassCleanup(cls.machine.close)
        if cls.machine.why_not:
            raise unittest.SkipTest(f"this machine cannot be overlaid: {cls.machine.why_not.strip()}")
        out = subprocess.run([sys.executable, "-B", str(SOURCE / "packaging/deb.py"), "--build-dir", str(BUILD), "--out",
                              f"{cls.machine.area}/dist"], capture_output=True, text=True, check=True, timeout=SECONDS).stdout
        cls.deb = pathlib.Path(out.strip())
        cls.others = cls.install_others()

    @classmethod
    def install_others(cls):
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        (ARCHIVES / "partial").mkdir(exist_ok=True)
        get = f"apt-get -o Dir::Cache::archives={ARCHIVES} -o APT::Sandbox::User=root -y -q --no-install-recommends install {' '.join(OTHERS)}"
        for script in (f"{get} --no-download", get, f"apt-get -q update; {get}"):
            try:
                cls.machine.run(script)
            except AssertionError as e:
                failure = e
                continue
            for fetched in pathlib.Path(f"/proc/{cls.machine.holder.pid}/root{cls.machine.area}/upper/{ARCHIVES}").glob("*.deb"):
                shutil.copy(fetched, ARCHIVES)  # the copy is thrown away; what it fetched is not
            return True
        print(f"Debian's MPICH and Open MPI cannot be had: {str(failure)[-300:]}", file=sys.stderr)
        return False

    def group(self, name):
        """Alternatives of a group with their priorities, and the chosen one."""
        text = self.machine.run('update-alternatives --query "$1" || true', name)
        found, chosen = {}, None
        for line in text.splitlines():
            key, _, value = line.partition(": ")
            if key == "Value":
                chosen = value
            if key == "Alternative":
                current = value
            if key == "Priority":
                found[current] = int(value)
        return found, chosen

    def test_install_use_remove(self):
        machine = self.machine
        library_group = "mpi-" + machine.run("gcc -print-multiarch").strip()
        before, group_before = machine.files(), self.group(library_group)
        mpirun_before, mpicc_before = self.group("mpirun"), self.group("mpi")
        shutil.copy(self.deb, f"/proc/{machine.holder.pid}/root{machine.area}/root/tmp/weft.deb")
        machine.run("dpkg -i /tmp/weft.deb")

        with self.subTest("alternatives"):
            for name, mine, others in (("mpirun", "/usr/bin/mpirun.weft", mpirun_before), ("mpi", "/usr/bin/mpicc.weft", mpicc_before)):
                found, chosen = self.group(name)
                self.assertEqual(found, {**others[0], mine: 30})
                self.assertEqual(chosen, others[1] or mine)
                self.assertTrue(all(p > 30 for p in others[0].values()))
            self.assertEqual(self.group(library_group), group_before)
            if self.others:
                self.assertEqual(len(group_before[0]), 2, "MPICH and Open MPI are both in the group that Weft stays out of")

        with self.subTest("beside the others"):
            machine.run("cat > /tmp/p.c <<'END'\n" + PROGRAM + "END\n")
            machine.run("mpicc.weft /tmp/p.c -o /tmp/p.weft")
            self.assertEqual(sorted(machine.run("mpiexec.weft -n 3 /tmp/p.weft").split()), ["0<-2", "1<-0", "2<-1"])
            self.assertIn("/usr/lib/weft/lib/libmpi_abi.so.1", machine.run("ldd /tmp/p.weft"))
            machine.run("weft info > /dev/null; weft doctor > /dev/null; man -w mpiexec.weft > /dev/null 2>&1 || true")
            if self.others:
                self.assertIn("Open MPI", machine.run("mpirun --version"))
                for name in ("mpich", "openmpi"):
                    machine.run(f"mpicc.{name} /tmp/p.c -o /tmp/p.{name}")
                    self.assertNotIn("weft", machine.run(f"ldd /tmp/p.{name}"))
                self.assertEqual(sorted(machine.run("mpiexec.mpich -n 3 /tmp/p.mpich").split()), ["0<-2", "1<-0", "2<-1"])

        if self.others:
            with self.subTest("modulefile"):
                kind = machine.run("uname -m").strip()
                module = f". /usr/share/modules/init/sh; module use /usr/lib/weft/share/modulefiles; module load mpi/weft-{kind}; "
                home = "/usr/lib/weft"
                self.assertEqual(machine.run(module + "echo $MPI_HOME $MPI_BIN $MPI_LIB $MPI_INCLUDE; command -v mpicc; command -v mpiexec").split(),
                                 [home, f"{home}/bin", f"{home}/lib", f"{home}/include", f"{home}/bin/mpicc", f"{home}/bin/mpiexec"])
                out = machine.run(module + "mpicc /tmp/p.c -o /tmp/p.module; mpiexec -n 2 /tmp/p.module; pkg-config --libs weft mpi-abi")
                self.assertIn("0<-1", out)
                self.assertIn("-lmpi_abi", out)
                # What Debian chose is there again after unloading; another MPI's module cannot be loaded beside it.
                self.assertEqual(machine.run(module + "module unload mpi; command -v mpicc; echo $MPI_HOME").split(), ["/usr/bin/mpicc"])
                machine.run(r"mkdir -p /tmp/modules/mpi; printf '#%%Module\nconflict mpi\n' > /tmp/modules/mpi/other")
                self.assertIn("conflict", machine.run(module + "module use /tmp/modules; module load mpi/other 2>&1 || true").lower())

        with self.subTest("chosen"):
            machine.run("update-alternatives --set mpirun /usr/bin/mpirun.weft; update-alternatives --set mpi /usr/bin/mpicc.weft")
            for name in ("mpirun", "mpiexec"):
                self.assertIn("Weft", machine.run(f"{name} --version"))
            machine.run("mpicc /tmp/p.c -o /tmp/p.chosen && mpicxx -showme:version && mpic++ -showme:version && mpiCC -showme:version")
            self.assertEqual(len(machine.run("mpiexec -n 2 /tmp/p.chosen").split()), 2)

        with self.subTest("removed"):
            machine.run("dpkg --remove weft-mpi; dpkg --purge weft-mpi")
            self.assertEqual((self.group("mpirun")[0], self.group("mpi")[0]), (mpirun_before[0], mpicc_before[0]))
            after = machine.files()
            self.assertEqual({name: what for name, what in after.items() if before.get(name) != what and what != "gone"}, {})
            self.assertEqual(sorted(name for name in before if name not in after and before[name] != "gone"), [])
            self.assertEqual(machine.run("dpkg --list weft-mpi 2>/dev/null | grep -c ^ii || true").strip(), "0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
