"""What `bench/tiers` measured as pictures. Needs matplotlib, so it runs in `.cache/venv`.

    tier_plots.py RESULTS.json FOLDER
"""

import json
import pathlib
import sys

import plots
from plots import plt

COLOURS = {"kiln, all in memory": "#d4d4d4", "kiln, tier": "#c2410c", "redis with swap": "#64748b",
           "memcached extstore": "#1d4ed8"}


def rivals(found, target):
    figure, rows = plt.subplots(3, 1, figsize=(11, 13))
    fields = (("Throughput", "thousand requests/s", lambda sample: sample["requests_per_second"] / 1000),
              ("p99 of hot requests", "ms", lambda sample: sample["hot"]["p99_ms"]),
              ("p50 of cold requests", "ms", lambda sample: sample["cold"]["p50_ms"]))
    for axes, (title, unit, of) in zip(rows, fields, strict=True):
        groups = {row: {name: [of(sample) for sample in samples] for name, samples in subjects.items()}
                  for row, subjects in found["rows"].items()}
        plots.bars(axes, groups, title, unit, COLOURS)
    plots.save(figure, target)


def overwrite(found, target):
    """Second by second: speed, and what is written for each byte that is moved."""
    rows = found["rows"]
    seconds = [row["second"] - rows[0]["second"] for row in rows]
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 7), sharex=True)
    above.plot(seconds, [row["requests"] / 1000 for row in rows], color=COLOURS["kiln, tier"], label="answered OK")
    above.plot(seconds, [row["refused"] / 1000 for row in rows], color="black", linewidth=0.7, label="refused")
    for second, row in zip(seconds, rows, strict=True):
        if row["saving"]:
            above.axvspan(second - 0.5, second + 0.5, color="#fed7aa", linewidth=0)
    above.set_title("Shaded: a snapshot is taken")
    above.set_ylabel("thousand SETs/s")
    below.plot(seconds, [row["written"] / max(1, row["put"]) for row in rows], color=COLOURS["kiln, tier"],
               label="bytes written for each one moved, so far")
    below.plot(seconds, [row["file"] / found["tier_bytes"] for row in rows], color=COLOURS["redis with swap"],
               label="file, of tier-max")
    below.set_xlabel("seconds")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.legend()
    plots.save(figure, target)


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    for name, draw in (("rivals", rivals), ("overwrite", overwrite)):
        if results.get(name, {}).get("found"):
            draw(results[name]["found"], folder / f"tiers-{name}.png")


if __name__ == "__main__":
    main()
