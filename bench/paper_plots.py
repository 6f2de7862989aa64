"""What `bench/paper` measured as pictures like the paper's figures 4 and 5. Needs matplotlib, so it runs in
`.cache/venv`.

    paper_plots.py RESULTS.json FOLDER
"""

import json
import pathlib
import statistics
import sys

import subjects  # noqa: F401  (finds the harness)

import plots
from paper_load import GOAL, SATURATION
from paper_servers import KILN_FILE, KILN_JETSTREAM, REDIS, VALKEY
from paper_tables import MB_MIN, P50_MS_MAX, P99_MS_MAX
from plots import plt

COLOURS = {**{name: plots.COLOURS[name] for name in (REDIS, VALKEY)}, KILN_FILE: plots.COLOURS["kiln"],
           KILN_JETSTREAM: "#f59e0b"}


def throughput(found, target):
    """As figure 4: bars of what each server answers at most."""
    figure, axes = plt.subplots(figsize=(9, 4.5))
    groups = {workload: {name: [sample["requests_per_second"] / 1000 for sample in samples]
                         for name, samples in rows[SATURATION].items()}
              for workload, rows in found["workloads"].items()}
    bars(axes, groups, f"At saturation, {found['processes']} × 100 connections, no pipeline", "thousand requests/s")
    plots.save(figure, target)


def bars(axes, groups, title, unit):
    """From zero: what is compared differs by shares, not by powers of ten."""
    plots.bars(axes, groups, title, unit, COLOURS)
    axes.set_yscale("linear")
    axes.set_ylim(bottom=0)
    axes.set_xticklabels(groups, rotation=0, ha="center", fontsize=9)


def latency(found, target):
    """As figure 5: a column a workload, p50 and p99 against the rate, large and hollow at GOAL. Dotted: what is asked of
    reads."""
    workloads = found["workloads"]
    figure, columns = plt.subplots(1, len(workloads), figsize=(5 * len(workloads), 5), sharey=True, squeeze=False)
    for axes, (workload, rows) in zip(columns[0], workloads.items(), strict=True):
        for name, colour in COLOURS.items():
            fixed = sorted((row for row in rows if row.isdigit() and name in rows[row]), key=int)
            for field, style, marker in (("p50_ms", "-", "o"), ("p99_ms", "--", "s")):
                axes.plot(*points([rows[row][name] for row in fixed], field), linestyle=style, marker=marker,
                          color=colour, markersize=4, label=f"{name}, {field[:3]}")
                if name in rows[GOAL]:
                    axes.plot(*points([rows[GOAL][name]], field), linestyle="", marker=marker, color=colour,
                              markersize=9, fillstyle="none")
        for goal in (P50_MS_MAX, P99_MS_MAX):
            axes.axhline(goal, color="black", linewidth=0.5, linestyle=":")
        axes.set_title(workload)
        axes.set_xlabel("thousand requests/s offered")
        axes.set_xlim(left=0)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    columns[0][0].set_ylabel("ms")
    columns[0][0].legend(fontsize=8)
    plots.save(figure, target)


def points(rows, field):
    """Thousand requests a second that were offered in each row, and what that took: medians."""
    return ([statistics.median(sample["rate"] for sample in samples) / 1000 for samples in rows],
            [statistics.median(sample[field] for sample in samples) for samples in rows])


def bandwidth(found, target):
    figure, axes = plt.subplots(figsize=(9, 4.5))
    groups = {shape: {name: [sample["mb_per_second"] for sample in samples] for name, samples in row.items()}
              for shape, row in found.items()}
    bars(axes, groups, "SETs of one shard; the line is the paper's", "MB/s of values")
    axes.axhline(MB_MIN, color="black", linewidth=0.8, linestyle="--")
    plots.save(figure, target)


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    for part, name, draw in (("offered", "throughput", throughput), ("offered", "latency", latency),
                             ("bandwidth", "bandwidth", bandwidth)):
        if part in results:
            draw(results[part]["found"], folder / f"paper-{name}.png")


if __name__ == "__main__":
    main()
