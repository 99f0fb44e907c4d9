"""What runs beside a measurement: hogs that want every CPU, a second job of the same library, a limit on CPU time.

Everything started here ends with the `with` that started it.
"""
import contextlib
import os
import pathlib
import select
import subprocess
import time

from . import runner


class Refused(Exception):
    """This machine does not allow it; the text says what and why."""


@contextlib.contextmanager
def hogs(program_dir, cpus, each=1, nice=0, cgroup=None):
    """`each` spinning processes on every one of `cpus`: in this control group, or each in a session of its own, as
    another user's program would be. A nice value counts within a group only, so with autogroup the session gets it too."""
    def place():
        if cgroup:
            cgroup.write_text(str(os.getpid()))
        os.nice(nice)
    running = []
    try:
        for cpu in list(cpus) * each:
            hog = subprocess.Popen([str(program_dir / "weft-bench-plain"), "hog", "--cpus", str(cpu)],
                                   stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=place)
            running.append(hog)
            group = pathlib.Path(f"/proc/{hog.pid}/autogroup")
            if nice and group.exists():
                group.write_text(str(nice))
        yield
        if any(hog.poll() is not None for hog in running):
            raise Refused("a hog ended before the measurement did")
    finally:
        for hog in running:
            hog.kill()
        for hog in running:
            hog.wait()


@contextlib.contextmanager
def second_job(library, ranks, args, confine, cgroup=None):
    """The same job once more on the same CPUs, for as long as the `with` lasts; it has begun when the body starts."""
    command = library.command(ranks, "weft-bench", runner.arguments([*args, "-r", 100000], confine))
    process = runner.start(command, library.environment(), confine, cgroup)
    try:
        ready, _, _ = select.select([process.stdout], [], [], 60)
        if not ready or not process.stdout.readline():
            raise runner.Broken(f"{library.label}: the second job did not start")
        yield process
        if process.poll() is not None:
            raise runner.Broken(f"{library.label}: the second job ended early, with status {process.returncode}")
    finally:
        runner.stop(process)


def _own(controller):
    """The folder of this process's control group: version 2, else version 1 of this controller."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup") / controllers / path.lstrip("/"), 1
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        if line.startswith("0::"):
            return pathlib.Path("/sys/fs/cgroup") / line[3:].lstrip("/"), 2
    raise Refused("no control group with the cpu controller")


def _remove(folder):
    """A launcher's helpers may live a moment longer than the launcher; a group with members cannot be removed."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)


@contextlib.contextmanager
def group(quota_percent=0, cpus=0, period_us=100000):
    """A control group, with this share of the time of so many CPUs; yields the file that takes members.

    The kernel shares a CPU out among control groups, and with autogroup among sessions, before it looks at processes,
    and sched_yield gives way within the own group only. A hog in another group therefore hurts much less than one in the
    same, as on a machine without autogroup or inside one container or batch job."""
    home, version = _own("cpu")
    folder = home / f"weft-bench-{os.getpid()}"
    limit = max(1000, int(period_us * cpus * quota_percent / 100))
    try:
        folder.mkdir()
        if quota_percent and version == 2:
            (folder / "cpu.max").write_text(f"{limit} {period_us}")
        elif quota_percent:
            (folder / "cpu.cfs_period_us").write_text(str(period_us))
            (folder / "cpu.cfs_quota_us").write_text(str(limit))
        elif not (folder / ("cpu.weight" if version == 2 else "cpu.shares")).exists():
            raise OSError("the cpu controller is not enabled for it")
    except OSError as why:
        if folder.exists():
            folder.rmdir()
        raise Refused(f"no control group can be made here: {why}") from None
    try:
        yield folder / "cgroup.procs"
    finally:
        _remove(folder)


@contextlib.contextmanager
def common_group():
    """One group for hogs and job if that can be had, else None: then they share one only where autogroup is off."""
    with contextlib.ExitStack() as stack:
        try:
            cgroup = stack.enter_context(group())
        except Refused:
            cgroup = None
        yield cgroup
