#!/usr/bin/env python3
"""Draws bars of tokens per second for each type of weights, from what `bench compare --json` wrote.

  compare_plot.py compare.json compare.svg
"""

import json
import sys

from svg_chart import picture, text, ticks

COLOURS = ("#1f618d", "#2e8b57", "#d68910", "#c0392b", "#6c3483")
LIMIT = 'fill="#eee" stroke="#aaa" stroke-dasharray="3 3"'
PANELS = 3  # in a row
WIDTH, HEIGHT = 290, 306  # of a panel
LEFT, TOP, BOTTOM = 66, 40, 210  # of the bars in it
HEAD, LEGEND = 56, 44
ROW = 17  # of the numbers under the bars
NEEDED = ("name", "batch", "length", "weights", "value", "limit", "fraction", "bytes_per_token")


def works(report):
    """The results of each work, in the order of the file."""
    results = report.get("results") if isinstance(report, dict) else None
    if not isinstance(results, list) or not results:
        raise ValueError("no results, expected a file of bench compare --json")
    found = {}
    for i, result in enumerate(results):
        for field in NEEDED:
            if field not in result:
                raise ValueError(f"results[{i}] has no {field}, expected a file of bench compare --json")
        found.setdefault((result["name"], result["batch"], result["length"]), []).append(result)
    return found


def number(value):
    """In three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# Under each bar.
NUMBERS = (("tokens/s", lambda result: number(result["value"])),
           ("of the limit", lambda result: f'{100 * result["fraction"]:.0f} %'),
           ("times bf16", lambda result: f'{result["to_bf16"]:.2f}' if "to_bf16" in result else "-"),
           ("MB/token", lambda result: number(result["bytes_per_token"] / 1e6)))


def bar(result, middle, width, y, colour):
    """What was measured before what was possible, with the spread where there is one."""
    def column(value, style, wide):
        return (f'<rect x="{middle - wide / 2:.1f}" y="{y(value):.1f}" width="{wide:.1f}" '
                f'height="{BOTTOM - y(value):.1f}" {style}/>')

    parts = [column(result["limit"], LIMIT, width), column(result["value"], f'fill="{colour}"', width - 10)]
    if "least" in result:
        low, high = y(result["least"]), y(result["most"])
        parts.append(f'<path d="M{middle:.1f} {low:.1f}V{high:.1f}m-4 0h8M{middle - 4:.1f} {low:.1f}h8" '
                     'stroke="#000"/>')
    parts.append(text(middle, BOTTOM + ROW, result["weights"], more='font-weight="bold"'))
    return parts + [text(middle, BOTTOM + (i + 2) * ROW, tell(result)) for i, (_, tell) in enumerate(NUMBERS)]


def panel(title, results, colours):
    marks = ticks(max(max(r["limit"], r.get("most", r["value"])) for r in results))

    def y(value):
        return BOTTOM - (BOTTOM - TOP) * value / marks[-1]

    right = WIDTH - 10
    parts = [text((LEFT + right) / 2, TOP - 16, title, more='font-size="13"')]
    for mark in marks:
        parts += [f'<path d="M{LEFT} {y(mark):.1f}H{right}" stroke="#ddd"/>',
                  text(LEFT - 6, y(mark) + 4, f"{mark:,g}", "end")]
    for i, label in enumerate(label for label, _ in NUMBERS):
        parts.append(text(LEFT - 4, BOTTOM + (i + 2) * ROW, label, "end", 'font-size="10" fill="#555"'))
    step = (right - LEFT) / len(results)
    for i, result in enumerate(results):
        parts += bar(result, LEFT + (i + 0.5) * step, min(44, step - 6), y, colours[result["weights"]])
    return parts


def chart(report):
    found = works(report)
    names = dict.fromkeys(result["weights"] for results in found.values() for result in results)
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    across = min(PANELS, len(found))
    width, height = max(2, across) * WIDTH, HEAD + -(-len(found) // across) * HEIGHT + LEGEND
    parts = [text(width / 2, 22, "Tokens per second by type of weights", more='font-size="15"'),
             text(width / 2, 42, report.get("machine", ""), more='fill="#555"')]
    for i, ((name, batch, length), results) in enumerate(found.items()):
        parts.append(f'<g transform="translate({i % across * WIDTH} {HEAD + i // across * HEIGHT})">')
        parts += [*panel(f"{name}, {batch} x {length} tokens", results, colours), "</g>"]
    legend = ("Filled: the median; line: slowest to fastest round.",
              "Dashed: the limit of the same run.")
    return picture(width, height, parts + [text(12, height - LEGEND + 12 + i * ROW, line, "start", 'fill="#555"')
                                           for i, line in enumerate(legend)])


def main():
    report, drawing = sys.argv[1:]
    try:
        with open(report) as file:
            drawn = chart(json.load(file))
    except (OSError, ValueError) as error:
        sys.exit(f"{report}: {error}")
    with open(drawing, "w") as file:
        file.write(drawn)


if __name__ == "__main__":
    main()
