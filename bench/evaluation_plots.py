"""The evaluations as pictures. Needs matplotlib, so it runs in `.cache/venv`.

    evaluation_plots.py RESULTS.json FOLDER
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogLocator  # noqa: E402

COLOURS = {"redis": "#64748b", "valkey": "#7c3aed", "kiln": "#c2410c", "kiln off-box": "#059669"}
FIELDS = (("mean_ms", "average, ms", 1, "log"), ("max_ms", "slowest answer, ms", 1, "log"),
          ("requests", "thousand requests/s", 1e-3, "linear"), ("memory", "memory, GiB", 2**-30, "linear"))


def seconds(run, field, factor):
    """Seconds from the snapshot's begin, and what each showed."""
    values = [row[field] * factor for phase in ("before", "during", "after") for row in run[phase]]
    first = -len(run["before"])
    return range(first, first + len(values)), values


def offbox(found, target):
    """A row a quantity, a column a server; each run a line; between the dashes the snapshot went on."""
    names = [name for name in COLOURS if name in found]
    figure, rows = plt.subplots(len(FIELDS), len(names), figsize=(3.6 * len(names), 10), sharey="row",
                                sharex="col", squeeze=False)
    for axes_row, (field, title, factor, scale) in zip(rows, FIELDS, strict=True):
        for axes, name in zip(axes_row, names, strict=True):
            for run in found[name]:
                axes.plot(*seconds(run, field, factor), color=COLOURS[name], alpha=0.7)
                axes.axvline(len(run["during"]), color="black", linewidth=0.5, linestyle="--")
            axes.axvline(0, color="black", linewidth=0.5, linestyle="--")
            axes.set_yscale(scale)
        if scale == "linear":
            axes_row[0].set_ylim(bottom=0)
        else:
            axes_row[0].yaxis.set_major_formatter("{x:g}")
            axes_row[0].yaxis.set_minor_formatter("")
            axes_row[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes_row[0].set_ylabel(title)
    for axes, name in zip(rows[0], names, strict=True):
        axes.set_title(name)
    for axes in rows[-1]:
        axes.set_xlabel("seconds")
    save(figure, target)


def scarce(found, target):
    figure, axes = plt.subplots(figsize=(9, 4.5))
    for name, colour in COLOURS.items():
        if name in found:
            axes.plot(*seconds(found[name], "requests", 1e-3), color=colour,
                      label=f"{name}: {found[name]['outcome']}")
    axes.axvline(0, color="black", linewidth=0.5, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds from the snapshot's begin")
    axes.set_ylabel("thousand SETs/s")
    axes.legend()
    save(figure, target)


def forks(found, target):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
    for name, sizes in found.items():
        grown = [row["gb"] for row in sizes]
        if sizes[0]["fork_ms"]:
            left.plot(grown, [row["fork_ms"] for row in sizes], "o-", color=COLOURS[name], label=name)
        right.plot(grown, [row["during_ms"] for row in sizes], "o-", color=COLOURS[name], label=name)
    left.set_title("latest_fork_usec")
    right.set_title("A client's longest wait during a snapshot")
    for axes in (left, right):
        axes.set_xlabel("GB in memory")
        axes.set_ylabel("ms")
        axes.set_ylim(bottom=0)
        axes.legend()
    save(figure, target)


def save(figure, target):
    figure.tight_layout()
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    for name, draw in (("offbox", offbox), ("scarce", scarce), ("forks", forks)):
        if results.get(name, {}).get("found"):
            draw(results[name]["found"], folder / f"evaluation-{name}.png")


if __name__ == "__main__":
    main()
