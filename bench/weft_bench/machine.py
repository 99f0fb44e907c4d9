"""What a result must say about where it was measured."""
import datetime
import os
import platform

from . import runner

OURS = ("WEFT_PEERS", "WEFT_BENCH_ROOT", "WEFT_INCLUDE")  # say where things are, not how the library behaves


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def describe():
    return {
        "cpu": cpu_name(),
        "cpus": len(runner.cpus()),
        "kernel": platform.release(),
        "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
        "load": os.getloadavg()[0],
        "settings": {k: v for k, v in os.environ.items() if k.startswith("WEFT_") and k not in OURS},
    }


def caption(m):
    text = f"{m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel']}, {m['date']}"
    if m["settings"]:
        text += "; not the defaults: " + " ".join(f"{k}={v}" for k, v in sorted(m["settings"].items()))
    return text


def warnings(m):
    if m["load"] > 0.5:
        yield f"other work is running here (load {m['load']:.1f}): results are worse and less steady than they could be"
    if m["cpus"] < 2:
        yield "only one CPU is allowed here: two ranks take turns on it, and latencies are those of the scheduler"


def autogroup():
    """Whether the kernel shares CPUs out among sessions before processes: a job of 8 ranks is then as one beside a hog."""
    try:
        with open("/proc/sys/kernel/sched_autogroup_enabled", encoding="utf-8") as file:
            return "autogroup on" if file.read().strip() == "1" else "autogroup off"
    except OSError:
        return "no autogroup"
