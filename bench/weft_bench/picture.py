"""Draws results: logarithmic axes, every library, and a caption that says where and how often.

save() runs this file as a program (picture.py DATA.json WHERE) by whichever Python has matplotlib; DATA.json says by "kind"
what it is: a sweep, collective operations, threads, applications, the critical path or a paper's figures, whose pictures go into the
folder WHERE, or partitioned communication, whose one picture is the file WHERE.
"""
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]

COLOURS = {"weft": "#c8102e", "mpich": "#1f77b4", "impi": "#2ca02c", "openmpi": "#9467bd", "openmpi-ucx": "#ff7f0e",
           # algorithms of one library
           "stages": "#1f77b4", "linear": "#8c564b", "binomial": "#2ca02c", "knomial": "#bcbd22", "chain": "#e377c2", "ring": "#9467bd",
           "doubling": "#17becf", "halving": "#ff7f0e", "bruck": "#7f7f7f", "dissemination": "#2ca02c", "pairwise": "#17becf", "tree": "#8c564b"}
DASHES = ("-", "--", ":", "-.")
PANELS = (("latency", "one-way latency", "µs"), ("bandwidth", "bandwidth, window 64", "GB/s"),
          ("rate", "message rate, window 64", "million/s"))
SIZE_TICKS = {1: "1", 8: "8", 64: "64", 512: "512", 4096: "4K", 32768: "32K", 262144: "256K", 4194304: "4M",
              33554432: "32M"}


def python_with_matplotlib():
    """This Python, or one in .venv-demo, made on the first use; None when there is no network to make it."""
    if importlib.util.find_spec("matplotlib"):
        return sys.executable
    home = PROJECT / ".venv-demo"
    python = home / "bin" / "python"
    have = [str(python), "-c", "import matplotlib"]
    if python.exists() and subprocess.run(have, capture_output=True).returncode == 0:
        return str(python)
    print("\nInstalling matplotlib into .venv-demo for the picture (once) ...", file=sys.stderr)
    for command in ([sys.executable, "-m", "venv", str(home)],
                    [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "matplotlib"]):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as why:
            print(f"  {why}", file=sys.stderr)
            return None
        if done.returncode:
            print("  " + (done.stderr.strip() or done.stdout.strip()).splitlines()[-1], file=sys.stderr)
            return None
    return str(python)


def save(data_file, where):
    """Draws what lies in data_file; returns a sentence for the user."""
    python = python_with_matplotlib()
    if not python:
        return (f"No picture: matplotlib is not here and could not be installed (apt install python3-matplotlib "
                f"python3-venv, or run again with a network). The numbers are in {data_file}.")
    done = subprocess.run([python, __file__, str(data_file), str(where)], capture_output=True, text=True)
    if done.returncode:
        return f"No picture: {done.stderr.strip().splitlines()[-1]}. The numbers are in {data_file}."
    return f"Pictures: {done.stdout.strip()}   numbers: {data_file}"


def plot_line(axis, name, label, points, dash="-"):
    """points: (x, [values]); the line joins the medians, the shade is from the least to the most."""
    points = sorted((x, sorted(values)) for x, values in points)
    xs, middle = [x for x, _ in points], [values[len(values) // 2] for _, values in points]
    style = {"linewidth": 2.6, "zorder": 5} if name == "weft" else {"linewidth": 1.3}
    colour = COLOURS.get(name, "black")
    axis.plot(xs, middle, marker="o", markersize=3, color=colour, linestyle=dash, label=label, **style)
    axis.fill_between(xs, [v[0] for _, v in points], [v[-1] for _, v in points], color=colour, alpha=0.15)


def ticks_of(sizes):
    """Those of SIZE_TICKS that lie among the sizes; each size its own where that leaves fewer than three."""
    among = {size: text for size, text in SIZE_TICKS.items() if min(sizes) <= size <= max(sizes)}
    return among if len(among) > 2 else {s: SIZE_TICKS.get(s, f"{s >> 10}K" if s >= 1024 else str(s)) for s in sorted(set(sizes))}


def set_axes(axis, title, x, ticks, log=True):
    from matplotlib.ticker import FixedLocator, NullLocator
    axis.set_xscale("log", base=2)
    if log:
        axis.set_yscale("log")
    axis.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticklabels(list(ticks.values()))
    axis.set_title(title)
    axis.set_xlabel(x)
    axis.grid(True, which="major", alpha=0.3)


def panels(titles, width=16, height=5.6):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, len(titles), figsize=(width, height), squeeze=False)
    return figure, axes[0]


def finish(figure, axes, title, caption, path):
    axes[0].legend(frameon=False)
    figure.suptitle(title, fontsize=14)
    save_figure(figure, caption, path)


def save_figure(figure, caption, path):
    figure.text(0.5, 0.01, caption, ha="center", fontsize=9, color="#444444")
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(path, dpi=130)
    print(path)


def draw_sweep(result, folder):
    figure, axes = panels(PANELS)
    for axis, (test, title, unit) in zip(axes, PANELS):
        for name, tests in result["data"].items():
            points = [(int(size), values) for size, values in tests[test].items()]
            plot_line(axis, name, result["labels"][name], points)
        set_axes(axis, f"{title} ({unit})", "message size in bytes", SIZE_TICKS)
    finish(figure, axes, "Two ranks on one node: Weft and the libraries installed beside it", result["caption"],
           folder / "weft.png")


def draw_operations(result, folder):
    """A picture for each operation and form with a panel for each number of ranks; data[ranks][form][operation][size][library]."""
    first = next(iter(result["data"].values()))
    for form, operation in [(f, o) for f in first for o in first[f]]:
        figure, axes = panels(result["data"], 5.4 * len(result["data"]))
        for axis, (ranks, forms) in zip(axes, result["data"].items()):
            by_size = forms[form][operation]
            for name, label in result["labels"].items():
                points = [(max(1, int(size)), values[name]) for size, values in by_size.items() if name in values]
                if points:
                    plot_line(axis, name, label, points)
            set_axes(axis, f"{ranks} ranks (µs a call)", "bytes of a rank's block or vector", SIZE_TICKS)
        finish(figure, axes, operation + ("" if form == "blocking" else f", {form}"), result["caption"],
               folder / f"coll-{operation}-{form}.png")


def draw_threads(result, folder):
    """A panel for each mode and measure, threads along the axis; data[measure][mode][threads][library]."""
    for measure, modes in result["data"].items():
        figure, axes = panels(modes, 4.6 * len(modes))
        for axis, (mode, by_threads) in zip(axes, modes.items()):
            for name, label in result["labels"].items():
                points = [(int(n), values[name]) for n, values in by_threads.items() if name in values]
                if points:
                    plot_line(axis, name, label, points)
            set_axes(axis, mode, "threads of each process", {int(n): n for n in by_threads})
        finish(figure, axes, f"{measure} ({result['units'][measure]})", result["caption"], folder / f"threads-{measure}.png")


def draw_part(result, path):
    """One picture of all panels; each line has its library, label, dash and points (size, values)."""
    figure, axes = panels(result["panels"], 16 / 3 * len(result["panels"]))
    for axis, panel in zip(axes, result["panels"]):
        for line in panel["lines"]:
            plot_line(axis, line["library"], line["label"], line["points"], DASHES[line["dash"] % len(DASHES)])
        sizes = [size for line in panel["lines"] for size, _ in line["points"]]
        set_axes(axis, panel["title"], "message size in bytes", ticks_of(sizes), panel["log"])
    finish(figure, axes, result["title"], result["caption"], path)


def draw_figures(result, folder):
    """A picture for each figure of the paper, with its panels side by side."""
    for figure in dict.fromkeys(panel["figure"] for panel in result["panels"]):
        mine = [panel for panel in result["panels"] if panel["figure"] == figure]
        draw_part({"panels": mine, "title": f"Figure {figure}", "caption": result["caption"]}, folder / f"figure-{figure}.png")


def draw_gains(axis, gains):
    """Beyond -100 a form takes more than twice the time: how much more is in the table."""
    for row, g in enumerate(reversed(gains)):
        low, middle, high = (max(-100, v) for v in ((g["interval"] or [g["improvement"]])[0], g["improvement"],
                                                     (g["interval"] or [g["improvement"]])[-1]))
        axis.errorbar(middle, row, xerr=[[middle - low], [high - middle]], fmt="o", capsize=3, markersize=4,
                      color="#888888" if "by messages" in g["against"] else "#c8102e")
    axis.set_yticks(range(len(gains)))
    axis.set_yticklabels([f"{g['what']}, against {g['against']}" for g in reversed(gains)], fontsize=6)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_xlim(-105, 105)
    axis.set_xlabel("100 (1 - T / T')")
    axis.set_title("what a form gains, 95 % intervals")
    axis.grid(True, axis="x", alpha=0.3)


def draw_sizes(axis, series, labels, launch):
    """Bytes by time: every library by messages, Weft in its other forms as well."""
    lines = {}
    for s in series.values():
        if s["launch"] != launch:
            continue
        for name, values in s["samples"].items():
            if s["test"] == "mpi" or name == "weft":
                lines.setdefault((name, s["test"]), []).append((s["bytes"], s["bytes"] / statistics.median(values) / 1e3))
    styles = {"mpi": "-", "opi": "--", "shared": ":", "fused": "-."}
    for (name, form), points in lines.items():
        axis.plot(*zip(*sorted(points)), marker="o", markersize=3, color=COLOURS.get(name, "black"), linestyle=styles.get(form, "-"),
                  label=labels[name] + ("" if form == "mpi" else ", " + form), linewidth=2 if name == "weft" else 1.2)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_title(f"{launch}: message by time (GB/s)", fontsize=9)
    axis.set_xlabel("bytes of a message")
    axis.grid(True, alpha=0.3)
    axis.legend(frameon=False, fontsize=7)


def draw_heap(result, folder):
    """What each form gains, and for launches with many sizes bandwidth by size."""
    sizes = {}
    for s in result["series"].values():
        if s["forms"]:
            sizes.setdefault(s["launch"], set()).add(s["bytes"])
    by_size = sorted(launch for launch, found in sizes.items() if len(found) > 3)
    gains = [g for g in result["gains"] if g["launch"] not in by_size]
    count = bool(gains) + len(by_size)
    if not count:
        raise SystemExit("nothing to draw: no forms were measured")
    figure, axes = panels(range(count), 7.5 * count, max(6, 0.2 * len(gains)))
    if gains:
        draw_gains(axes[0], gains)
    for axis, launch in zip(axes[bool(gains):], by_size):
        draw_sizes(axis, result["series"], result["labels"], launch)
    save_figure(figure, result["caption"], folder / "heap.png")


def middle_of(point, kind):
    """{library: median} of a point's times."""
    return {name: statistics.median(kinds[kind]) for name, kinds in point["samples"].items() if kinds[kind]}


def draw_study_rates(axis, result, points, dashes):
    """Grid-point iterations, or atom steps, of a rank per second, in millions."""
    for (series, name), dash in dashes.items():
        line = [(p["per_rank"], [p["per_rank"] / us for us in p["samples"][name]["together"]]) for p in points if p["series"] == series]
        line = [(x, values) for x, values in line if values]
        if line:
            plot_line(axis, name, f"{result['labels'][name]}, {series}", line, dash)


def draw_study_gains(axis, result, points, dashes):
    """Each peer's time by Weft's."""
    for (series, name), dash in dashes.items():
        line = [(p["per_rank"], middle_of(p, "together")) for p in points if p["series"] == series]
        line = [(x, [m[name] / m["weft"]]) for x, m in line if name != "weft" and name in m and "weft" in m]
        if line:
            plot_line(axis, name, f"{result['labels'][name]}, {series}", line, dash)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_ylim(0, min(4, axis.get_ylim()[1]))  # what is beyond stands in the table


def draw_study_efficiency(axis, result, points, dashes, ranks):
    """Measured as points, the model as lines."""
    models = {(m["series"], m["library"]): m for m in result["models"] if m["study"] == points[0]["study"] and m["ranks"] == ranks}
    for (series, name), dash in dashes.items():
        mine = [p for p in points if p["series"] == series]
        found = [(p["per_rank"], middle_of(p, "alone")[name] / middle_of(p, "together")[name]) for p in mine
                 if name in middle_of(p, "alone") and name in middle_of(p, "together")]
        model = models.get((series, name))
        if not found or not model:
            continue
        axis.plot(*zip(*found), "o", markersize=4, color=COLOURS.get(name, "black"))
        xs = [mine[0]["per_rank"] * 2 ** (i / 4) for i in range(4 * 12) if mine[0]["per_rank"] * 2 ** (i / 4) <= mine[-1]["per_rank"]]
        axis.plot(xs, [model["work_us"] * x / (model["work_us"] * x + model["overhead_us"]) for x in xs], linestyle=dash,
                  color=COLOURS.get(name, "black"), label=f"{result['labels'][name]}, {series}")
    axis.set_ylim(0, 1.05)


def draw_study(axes, result, study, points):
    ranks = min(p["ranks"] for p in points)
    points = [p for p in points if p["ranks"] == ranks]
    kinds = sorted({p["series"] for p in points})
    dashes = {(series, name): DASHES[i % len(DASHES)] for i, series in enumerate(kinds) for name in result["labels"]}
    draw_study_rates(axes[0], result, points, dashes)
    draw_study_gains(axes[1], result, points, dashes)
    draw_study_efficiency(axes[2], result, points, dashes, ranks)
    sizes = [p["per_rank"] for p in points]
    ticks = {n: n for n in (10, 30, 100, 300, 1000, 3000, 10000, 30000) if min(sizes) <= n <= max(sizes)}
    unit, of = ("grid points", "point iterations") if study == "sem" else ("atoms", "atom steps")
    for axis, title in zip(axes, (f"million {of} per CPU-second", "time of a peer by Weft's", "parallel efficiency: measured, and the model")):
        set_axes(axis, f"{study}, {ranks} ranks: {title}", f"{unit} of a rank", ticks, log=axis is axes[0])
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=6)


def draw_apps(result, folder):
    """A row for each study, at the fewest ranks: its metric, gains over the peers, efficiency."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    by_study = {}
    for point in sorted(result["points"], key=lambda p: (p["series"], p["per_rank"])):
        by_study.setdefault(point["study"], []).append(point)
    figure, rows = pyplot.subplots(len(by_study), 3, figsize=(18, 6 * len(by_study)), squeeze=False)
    for axes, (study, points) in zip(rows, by_study.items()):
        draw_study(axes, result, study, points)
    save_figure(figure, result["caption"], folder / "apps.png")


def draw_stack(axis, labels, stacks, paper):
    """A bar for each label, made of categories one on the other, and the paper's beside it."""
    places = range(len(labels))
    bottom = [0.0] * len(labels)
    for colour, category in enumerate(stacks[0]):
        heights = [stack[category] for stack in stacks]
        if any(heights):
            axis.bar([p - 0.2 for p in places], heights, 0.38, bottom=bottom, label=category, color=f"C{colour % 10}")
            bottom = [b + h for b, h in zip(bottom, heights)]
    axis.bar([p + 0.2 for p in places], paper, 0.38, color="#bbbbbb", label="the paper, all")
    for place, height in [(p - 0.2, b) for p, b in zip(places, bottom)] + [(p + 0.2, b) for p, b in zip(places, paper)]:
        axis.text(place, height, f"{height:.0f}", ha="center", va="bottom", fontsize=8)
    axis.set_xticks(list(places))
    axis.set_xticklabels(labels, fontsize=9)


def draw_stairs(result, folder):
    """Instructions by build and reason, the paper's total beside each: its Table 1 and staircase."""
    builds = list(result["reasons"])
    figure, axes = panels(result["reasons"][builds[0]], 14)
    for column, (axis, what) in enumerate(zip(axes, result["reasons"][builds[0]])):
        draw_stack(axis, builds, [result["reasons"][build][what] for build in builds], [result["paper"][build][column] for build in builds])
        axis.set_title(what)
        axis.set_ylabel("instructions of a call")
        axis.grid(True, axis="y", alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    finish(figure, axes, "Every instruction of a call, by reason", result["caption"], folder / "counts.png")


def draw_path_rates(result, folder):
    """A panel for each wire, a group of bars for each call, a bar for each build."""
    wires = [(way, gap) for way, builds in result["rates"].items() for gap in next(iter(builds.values()))]
    figure, axes = panels(wires, 5.2 * len(wires), 6.4)
    colours = {build: f"C{i}" for i, build in enumerate(next(iter(result["rates"].values())))}
    for axis, (way, gap) in zip(axes, wires):
        builds = result["rates"][way]
        calls = list(next(iter(builds.values()))[gap])[1:]   # the first is the empty call
        for i, (build, by_gap) in enumerate(builds.items()):
            bars = [sorted(by_gap[gap][call]) for call in calls]
            middle = [statistics.median(b) for b in bars]
            spread = [[m - b[len(b) // 4] for m, b in zip(middle, bars)], [b[3 * len(b) // 4] - m for m, b in zip(middle, bars)]]
            axis.barh([row + 0.8 * i / len(builds) for row in range(len(calls))], middle, 0.8 / len(builds), xerr=spread, label=build, color=colours[build])
        axis.axvline(132.8, color="black", linewidth=0.8, linestyle="--")
        axis.set_yticks([row + 0.3 for row in range(len(calls))])
        axis.set_yticklabels(calls if axis is axes[0] else [], fontsize=8)
        axis.invert_yaxis()
        axis.set_title(" ".join(("into the null wire" if way == "null" else "a link" if way == "link" else "shared memory", gap)))
        axis.set_xlabel("million messages a second")
        axis.grid(True, axis="x", alpha=0.3)
    finish(figure, axes, "Rates of 1-byte messages from one core; the dashed line is the paper's best", result["caption"], folder / "rates.png")


def draw_path(result, folder):
    draw_stairs(result, folder)
    draw_path_rates(result, folder)


DRAW = {"sweep": draw_sweep, "coll": draw_operations, "threads": draw_threads, "part": draw_part,
        "heap": draw_heap, "apps": draw_apps, "path": draw_path, "figures": draw_figures}

if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        read = json.load(source)
    DRAW[read["kind"]](read, pathlib.Path(sys.argv[2]))
