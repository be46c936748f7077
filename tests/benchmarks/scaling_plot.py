#!/usr/bin/env python3
"""Draws how cost grows with length: Table 7 of the H3 paper, tokens per second by the length of the prompt, from what
`bench generate --table7 --json` or `tools/gpu run` wrote, and Table 6 of the BiGS paper, operations by the length of
the input, as `inspect --flops` counts them. Rings are what the papers print.

  scaling_plot.py PROGRAM table7.json scaling.svg
"""

import json
import math
import re
import subprocess
import sys

from svg_chart import picture, text

WIDTH, HEIGHT = 460, 330  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 70, 440, 60, 270  # of the lines in it
OURS, OTHER, LIMIT = "#1f618d", "#c0392b", "#888"
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
# The papers' tables: tokens per second on an A100, and operations.
TABLE7 = {"hybrid H3": {512: 1980, 1024: 1580, 1536: 1240}, "Transformer": {512: 1340, 1024: 770, 1536: 520}}
TABLE6 = {"BiGS": {128: 8.1e10, 512: 3.2e11, 1024: 6.5e11, 4096: 2.6e12},
          "BERT large": {128: 7.9e10, 512: 3.4e11, 1024: 7.2e11, 4096: 4.1e12}}


def throughput(report):
    """The machine, and tokens per second by length of the prompt, measured and possible."""
    if isinstance(report, dict):
        report = report.get("h3-1.3b-table7", {}).get("outcome", report)
    results = report.get("results") if isinstance(report, dict) else None
    found = [r for r in results or [] if r.get("name") == "table7"]
    if not found:
        raise ValueError("no results of table7, expected a file of bench generate --table7 --json")
    return (report.get("machine", ""), *({r["length"]: r[field] for r in found} for field in ("value", "limit")))


def operations(counted):
    """The total in what `inspect --flops` prints."""
    total = re.search(r"^total\s+(\S+)", counted, re.MULTILINE)
    if not total:
        raise ValueError(f"no total in {counted!r}")
    return float(total[1])


def count(program, preset):
    return {length: operations(subprocess.run(
        [program, "inspect", "--flops", "--length", str(length), "--preset", preset],
        check=True, capture_output=True, text=True).stdout) for length in LENGTHS}


def panel(title, unit, lines):
    """`lines`: (name, points, colour, style), style "line", "dashed" or "rings"; both axes logarithmic."""
    xs = sorted({x for _, points, _, _ in lines for x in points})
    ys = [y for _, points, _, _ in lines for y in points.values()]
    decades = range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1)

    def at(x, y):
        across = math.log(x / xs[0]) / math.log(xs[-1] / xs[0])
        up = (math.log10(y) - decades[0]) / (decades[-1] - decades[0])
        return LEFT + 14 + across * (RIGHT - LEFT - 28), BOTTOM - up * (BOTTOM - TOP)

    parts = [text((LEFT + RIGHT) / 2, 22, title, more='font-size="13"'), text(LEFT, TOP - 10, unit, "start"),
             text((LEFT + RIGHT) / 2, BOTTOM + 34, "tokens of the input")]
    for decade in decades:
        _, y = at(xs[0], 10 ** decade)
        parts += [f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="#ddd"/>',
                  text(LEFT - 6, y + 4, f"{10 ** decade:,}" if decade < 6 else f"1E{decade}", "end")]
    parts += [text(at(x, 10 ** decades[0])[0], BOTTOM + 16, f"{x:,}") for x in xs]
    for i, (name, points, colour, style) in enumerate(lines):
        places = [at(x, y) for x, y in sorted(points.items())]
        y = BOTTOM + 52 + 16 * (i // 2)
        x = LEFT + (RIGHT - LEFT) / 2 * (i % 2)
        if style == "rings":
            parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="none" stroke="{colour}" stroke-width="1.5"/>'
                      for px, py in [*places, (x + 8, y - 4)]]
        else:
            dashes = ' stroke-dasharray="5 4"' if style == "dashed" else ""
            for path in ("L".join(f"{px:.1f} {py:.1f}" for px, py in places), f"{x} {y - 4}h16"):
                parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts.append(text(x + 22, y, name, "start"))
    return parts


def chart(table7, bigs, bert):
    machine, measured, possible = throughput(table7)
    left = panel("Generation, 1.3B, 64 sequences of 128 new tokens (H3, Table 7)", f"tokens/s; {machine}",
                 [("measured, hybrid H3", measured, OURS, "line"), ("limit of that run", possible, LIMIT, "dashed"),
                  *((f"paper, {name}, A100", points, colour, "rings")
                    for (name, points), colour in zip(TABLE7.items(), (OURS, OTHER)))])
    right = panel("Operations of one input (BiGS, Table 6)", "operations",
                  [("BiGS", bigs, OURS, "line"), ("BERT large", bert, OTHER, "line"),
                   *((f"paper, {name}", points, colour, "rings")
                     for (name, points), colour in zip(TABLE6.items(), (OURS, OTHER)))])
    return picture(2 * WIDTH, HEIGHT + 30, ["<g>", *left, f'</g><g transform="translate({WIDTH} 0)">', *right, "</g>"])


def main():
    program, report, drawing = sys.argv[1:]
    try:
        with open(report) as file:
            drawn = chart(json.load(file), count(program, "bigs-4096"), count(program, "bert-large"))
    except (OSError, ValueError) as error:
        sys.exit(f"{report}: {error}")
    with open(drawing, "w") as file:
        file.write(drawn)


if __name__ == "__main__":
    main()
