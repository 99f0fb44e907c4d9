"""Source and binary packages of Debian, fetched by apt-get with lists of their own.

apt-get checks every file against Debian's signed index. The system's sources, lists and packages are neither used nor
changed, so no root is needed and deb-src need not be enabled; only the mirror is the system's. A source package's original archive is unpacked as
upstream made it, without Debian's patches.
"""
import os
import pathlib
import shutil
import subprocess
import tarfile

import fetch

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TOOLS = ("apt-get", "dpkg-deb")


def release():
    """Debian's code name for this system's release, such as bookworm."""
    lines = pathlib.Path("/etc/os-release").read_text().splitlines() if pathlib.Path("/etc/os-release").exists() else []
    return dict(line.split("=", 1) for line in lines if "=" in line).get("VERSION_CODENAME", "").strip('"')


def mirror():
    """Where the system gets this release from; None where it says nothing of it."""
    if "WEFT_DEBIAN_MIRROR" in os.environ:
        return os.environ["WEFT_DEBIAN_MIRROR"]
    out = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                         text=True, capture_output=True).stdout
    return next((w[0] for w in map(str.split, out.splitlines()) if w[1:] == [release(), "main"]), None)


class Debian:
    def __init__(self, area):
        self.area = area
        self.home = area / "apt"
        self.archives = area / "archives"

    def missing(self):
        """What fetching needs and this machine lacks, in words."""
        lacks = [tool for tool in TOOLS if not shutil.which(tool)]
        if not KEYRING.exists():
            lacks.append(f"{KEYRING} (the package debian-archive-keyring)")
        if not lacks and not mirror():
            lacks.append(f"a source of Debian's {release() or 'release'} main in /etc/apt, or its address in WEFT_DEBIAN_MIRROR")
        return lacks

    def environment(self):
        return fetch.clean_environment(APT_CONFIG=str(self.home / "apt.conf"), LC_ALL="C")

    def prepare(self):
        """Writes apt's configuration and brings its lists; done once."""
        mark = self.home / "ready"
        if mark.exists():
            return
        for folder in (self.home / "lists/partial", self.home / "archives/partial", self.archives):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / "status").touch()
        origin = f"[signed-by={KEYRING}] {mirror()} {release()} main\n"
        (self.home / "sources.list").write_text(f"deb-src {origin}deb {origin}")
        (self.home / "apt.conf").write_text(
            f'Dir::State "{self.home}";\nDir::State::status "{self.home}/status";\nDir::Cache "{self.home}";\n'
            f'Dir::Etc::sourcelist "{self.home}/sources.list";\nDir::Etc::sourceparts "-";\n'
            # The sandbox user may not be allowed to write into a private build tree.
            'APT::Sandbox::User "root";\nAcquire::Retries "3";\n')
        self.apt("update")
        mark.touch()

    def apt(self, *words):
        fetch.run(["apt-get", "-q", *words], env=self.environment(), cwd=self.archives)

    def newest(self, pattern):
        found = sorted(self.archives.glob(pattern))
        return found[-1] if found else None

    def source(self, package, into):
        """The folder that holds the package's original sources; fetched and unpacked once."""
        into = pathlib.Path(into)
        if into.exists():
            return into
        if not self.newest(f"{package}_*.orig.tar.*"):
            self.prepare()
            self.apt("source", "--download-only", "--tar-only", package)
        unpacked = into.with_name(into.name + ".unpacking")
        shutil.rmtree(unpacked, ignore_errors=True)
        with tarfile.open(self.newest(f"{package}_*.orig.tar.*")) as tar:
            tar.extractall(unpacked)
        top = list(unpacked.iterdir())
        (top[0] if len(top) == 1 else unpacked).rename(into)
        shutil.rmtree(unpacked, ignore_errors=True)
        return into

    def binary(self, package, into):
        """The folder into which a binary package was unpacked, not installed."""
        into = pathlib.Path(into)
        if into.exists():
            return into
        if not self.newest(f"{package}_*.deb"):
            self.prepare()
            self.apt("download", package)
        unpacked = into.with_name(into.name + ".unpacking")
        shutil.rmtree(unpacked, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", str(self.newest(f"{package}_*.deb")), str(unpacked)], check=True)
        unpacked.rename(into)
        return into
