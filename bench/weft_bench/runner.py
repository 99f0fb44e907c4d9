"""Starts one job, bounded in time, and reads the JSON lines it prints."""
import json
import os
import signal
import subprocess
import time


class Broken(Exception):
    """A run that failed, hung or was not the library it should have been; the text says which and why."""


def cpus():
    return sorted(os.sched_getaffinity(0))


def start(command, env=None, confine=None, cgroup=None):
    """A session of its own, on these CPUs alone, in this control group; its output is piped."""
    def place():
        if cgroup:
            cgroup.write_text(str(os.getpid()))
        if confine:
            os.sched_setaffinity(0, confine)
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, errors="replace", start_new_session=True,
                            preexec_fn=place if confine or cgroup else None)


def stop(process):
    """A launcher gets the time to take its ranks along; the process group is ours, made for this run."""
    for number, grace_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.communicate(timeout=grace_s)
            return
        except subprocess.TimeoutExpired:
            continue


def execute(command, env=None, timeout_s=120, confine=None, cgroup=None):
    """Runs a command to its end; returns its output and the seconds the whole command took."""
    began = time.monotonic()
    process = start(command, env, confine, cgroup)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        stop(process)
        raise Broken(f"did not finish within {timeout_s} s: {' '.join(command)}") from None
    except BaseException:
        stop(process)
        raise
    took = time.monotonic() - began
    if process.returncode:
        tail = " | ".join((err.strip() or out.strip()).splitlines()[-4:])
        raise Broken(f"exit status {process.returncode}: {' '.join(command)}: {tail}")
    return out, took


def records(text):
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def arguments(args, confine=None):
    return [*args, "--json", "--cpus", ",".join(map(str, sorted(confine or cpus())))]


def bench(library, ranks, args, timeout_s=120, confine=None, cgroup=None, env=None, program="weft-bench"):
    """One launch of weft-bench, weft-bench-part or an application, with these variables besides: its records without the header."""
    command = library.command(ranks, program, arguments(args, confine))
    try:
        out, _ = execute(command, library.environment() | (env or {}), timeout_s, confine, cgroup)
        lines = records(out)
    except (Broken, ValueError) as why:
        raise Broken(f"{library.label}: {why}") from None
    if not lines or library.expects not in lines[0].get("library", ""):
        raise Broken(f"{library.label}: the program ran on {lines[0].get('library') if lines else 'nothing'}")
    library.version = lines[0]["library"]
    return lines[1:]


def plain(program_dir, args, timeout_s=120, confine=None, program="weft-bench-plain"):
    """One run of a comparator without MPI."""
    command = [str(program_dir / program), *map(str, args), "--cpus", ",".join(map(str, confine or cpus()))]
    out, _ = execute(command, None, timeout_s, confine)
    return records(out)


def hello(library, ranks, timeout_s=120):
    """Seconds the whole command `mpiexec -n ranks hello` took."""
    try:
        out, took = execute(library.command(ranks, "weft-hello", []), library.environment(), timeout_s)
    except Broken as why:
        raise Broken(f"{library.label}: {why}") from None
    if out.count("hello from rank") != ranks or f" of {ranks}" not in out:
        raise Broken(f"{library.label}: {ranks} ranks did not all say hello")
    return took
