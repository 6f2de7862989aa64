"""What `bench/shard` measured as pictures. Needs matplotlib, so it runs in `.cache/venv`.

    shard_plots.py RESULTS.json FOLDER
"""

import json
import pathlib
import statistics
import sys

import plots
from plots import plt

COLOURS = {"kiln": "#c2410c", "bare": "#64748b", "primary": "#c2410c", "replica": "#1d4ed8"}


def cost(found, target):
    figure, (above, below) = plt.subplots(2, 1, figsize=(11, 9))
    for axes, field, title, unit in ((above, "mb_per_second", "Into the log", "MB/s"),
                                     (below, "p50_ms", "p50 of a SET, and of an append", "ms")):
        groups = {f"{log}: {shape}": {client: [sample[field] for sample in row[client]]
                                      for client in ("kiln", "bare")}
                  for log, shapes in found.items() for shape, row in shapes.items()}
        plots.bars(axes, groups, title, unit, COLOURS)
    plots.save(figure, target)


def apply(found, target):
    figure, axes = plt.subplots(figsize=(7, 4.5))
    groups = {log: {who: [sample[who] for sample in samples] for who in ("primary", "replica")}
              for log, samples in found.items()}
    plots.bars(axes, groups, "SET × 16", "CPU-seconds per million", COLOURS)
    axes.set_yscale("linear")
    plots.save(figure, target)


def failover(found, target):
    figure, axes = plt.subplots(figsize=(9, 4.5))
    for place, (log, row) in enumerate(found.items()):
        for ending, colour in (("kill -9", "#c2410c"), ("SIGTERM", "#1d4ed8")):
            values = row[ending]
            spots = [place + (0.15 if ending == "SIGTERM" else -0.15)] * len(values)
            axes.scatter(spots, values, s=14, color=colour, label=ending if place == 0 else None)
            axes.hlines(statistics.median(values), spots[0] - 0.1, spots[0] + 0.1, color="black")
    axes.set_xticks(range(len(found)))
    axes.set_xticklabels([f"{log}, lease {row['lease_ms']} ms" for log, row in found.items()])
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.set_title("Time without writes; the line is the median")
    axes.legend()
    plots.save(figure, target)


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    for name, draw in (("cost", cost), ("apply", apply), ("failover", failover)):
        if name in results:
            draw(results[name], folder / f"shard-{name}.png")


if __name__ == "__main__":
    main()
