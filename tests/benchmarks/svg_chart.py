"""Pieces of charts in SVG, for the scripts that draw what was measured."""

import html
import math


def ticks(most):
    """Round numbers from 0 to `most` or a little more."""
    step = 10 ** math.floor(math.log10(most))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if most / s <= 8)
    return [i * step for i in range(math.ceil(most / step) + 1)]


def text(x, y, content, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(str(content), False)}</text>'


def picture(width, height, parts):
    """A whole file."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
