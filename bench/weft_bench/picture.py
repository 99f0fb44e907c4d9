"""Draws a sweep: three panels, logarithmic axes, every library, and a caption that says where and how often.

Run as a program (picture.py DATA.json OUT.png) by whichever Python has matplotlib.
"""
import json
import sys

COLOURS = {"weft": "#c8102e", "mpich": "#1f77b4", "impi": "#2ca02c", "openmpi": "#9467bd", "openmpi-ucx": "#ff7f0e"}
PANELS = (("latency", "one-way latency", "µs"), ("bandwidth", "bandwidth, window 64", "GB/s"),
          ("rate", "message rate, window 64", "million/s"))


def draw(result, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, NullLocator
    figure, axes = pyplot.subplots(1, 3, figsize=(16, 5.6))
    ticks = {1: "1", 8: "8", 64: "64", 512: "512", 4096: "4K", 32768: "32K", 262144: "256K", 4194304: "4M"}
    for axis, (test, title, unit) in zip(axes, PANELS):
        for name, tests in result["data"].items():
            points = sorted((int(size), sorted(values)) for size, values in tests[test].items())
            sizes = [size for size, _ in points]
            middle = [values[len(values) // 2] for _, values in points]
            style = {"linewidth": 2.6, "zorder": 5} if name == "weft" else {"linewidth": 1.3}
            colour = COLOURS.get(name, "black")
            axis.plot(sizes, middle, marker="o", markersize=3, color=colour, label=result["labels"][name], **style)
            axis.fill_between(sizes, [v[0] for _, v in points], [v[-1] for _, v in points], color=colour, alpha=0.15)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.xaxis.set_major_locator(FixedLocator(list(ticks)))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticklabels(list(ticks.values()))
        axis.set_title(f"{title} ({unit})")
        axis.set_xlabel("message size in bytes")
        axis.grid(True, which="major", alpha=0.3)
    axes[0].legend(frameon=False)
    figure.suptitle("Two ranks on one node: Weft and the libraries installed beside it", fontsize=14)
    figure.text(0.5, 0.01, result["caption"], ha="center", fontsize=9, color="#444444")
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        draw(json.load(source), sys.argv[2])
