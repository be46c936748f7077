#!/usr/bin/env python3
"""Draws the time to the first token of each turn, from what conversations.py wrote.

  conversations_plot.py conversations.json conversations.svg
"""

import json
import sys

from svg_chart import picture, text, ticks

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 620, 40, 340
SERIES = (("growing_prompts_without_cache", "growing prompts", "#c0392b"),
          ("growing_prompts", "growing prompts, prefix cache", "#d68910"), ("handles", "states", "#1f618d"))


def chart(report):
    lines = [(label, colour, report[name]["first_token_ms_by_turn"]) for name, label, colour in SERIES]
    turns = len(lines[0][2])
    marks = ticks(max(max(values) for _, _, values in lines))

    def x(turn):
        return LEFT + (RIGHT - LEFT) * turn / turns

    def y(value):
        return BOTTOM - (BOTTOM - TOP) * value / marks[-1]

    parts = [text(WIDTH / 2, 22, "Milliseconds to the first token of a turn", more='font-size="15"'),
             text((LEFT + RIGHT) / 2, BOTTOM + 38, "turn")]
    for mark in marks:
        parts += [f'<path d="M{LEFT} {y(mark):.1f}H{RIGHT}" stroke="#ddd"/>', text(LEFT - 8, y(mark) + 4, f"{mark:g}", "end")]
    parts += [text(x(turn), BOTTOM + 18, turn) for turn in range(0, turns + 1, max(1, turns // 10))]
    for i, (label, colour, values) in enumerate(lines):
        points = " ".join(f"{x(turn + 1):.1f},{y(value):.1f}" for turn, value in enumerate(values))
        parts += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  text(LEFT + 12, TOP + 14 + 18 * i, label, "start", f'fill="{colour}"')]
    return picture(WIDTH, HEIGHT, parts)


def main():
    report, drawing = sys.argv[1:]
    with open(report) as file:
        drawn = chart(json.load(file))
    with open(drawing, "w") as file:
        file.write(drawn)


if __name__ == "__main__":
    main()
