"""The same numbers as pictures. Needs matplotlib, so it runs in `.cache/venv`.

    plots.py RESULTS.json FOLDER
"""

import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"kiln": "#c2410c", "kiln plain": "#fb923c", "redis": "#64748b", "valkey": "#0f766e", "redis 8": "#a16207",
           "redis always": "#1d4ed8", "valkey always": "#38bdf8", "redis 8 always": "#7c3aed", "floor": "#d4d4d4"}


def bars(axes, groups, title, unit, colours=None):
    """`groups`: {group: {name: values}}; a bar is the median, its whisker the range.

    Logarithmic: what is compared lies side by side, while the groups differ a hundredfold.
    """
    colours = colours or COLOURS
    names = [name for name in colours if any(name in row for row in groups.values())]
    width, labelled = 0.8 / max(1, len(names)), set()
    for index, name in enumerate(names):
        for place, row in enumerate(groups.values()):
            if name in row:
                middle = statistics.median(row[name])
                axes.bar(place + index * width, middle, width, color=colours[name],
                         label=None if name in labelled else name)
                labelled.add(name)
                axes.vlines(place + index * width, min(row[name]), max(row[name]), color="black")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(groups))])
    axes.set_xticklabels(groups, rotation=25, ha="right", fontsize=8)
    axes.set_title(title)
    axes.set_yscale("log")
    axes.set_ylabel(unit)
    axes.legend(fontsize=8)


def throughput(found, target):
    """The rows that there are of every command; the others stand in the tables."""
    figure, axes = plt.subplots(3, 1, figsize=(14, 14))
    for place, (pipeline, field, title, unit, factor) in zip(axes, (
            (16, "requests_per_second", "Throughput", "thousand requests/s", 1e-3),
            (16, "cpu_seconds_per_million", "Server CPU", "CPU-seconds per million", 1),
            (1, "cpu_seconds_per_million", "Server CPU without a pipeline", "CPU-seconds per million", 1)),
            strict=True):
        end = f" 100 × {pipeline}"
        groups = {cell: {name: [sample[field] * factor for sample in samples] for name, samples in row.items()}
                  for cell, row in found.items() if cell.endswith(end)}
        bars(place, groups, title, unit)
    save(figure, target)


def memory(found, target):
    figure, axes = plt.subplots(figsize=(11, 4.5))
    groups = {content: {name: [row[name]] for name in COLOURS if name in row} for content, row in found.items()}
    bars(axes, groups, "Memory an item", "bytes")
    save(figure, target)


def snapshot(found, target):
    figure, axes = plt.subplots(figsize=(9, 4.5))
    for name in ("kiln", "redis"):
        for number, run in enumerate(found.get(name, [])):
            before, during = run["before_ms"], run["during_ms"]
            seconds = range(-len(before), len(during))
            axes.plot(seconds, before + during, color=COLOURS[name], alpha=0.7,
                      label=name if number == 0 else None)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_title("Slowest answer of each second; the snapshot starts at 0")
    axes.set_xlabel("seconds")
    axes.set_ylabel("ms")
    axes.legend()
    save(figure, target)


def save(figure, target):
    figure.tight_layout()
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    for name, draw in (("throughput", throughput), ("memory", memory), ("snapshot", snapshot)):
        if name in results:
            draw(results[name], folder / f"bench-{name}.png")


if __name__ == "__main__":
    main()
