# SPDX-License-Identifier: Apache-2.0
"""Line and scatter plots as SVG text, so that a report needs no script and no other file."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 880
HEIGHT: Final = 260
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 16, 40
COLOURS: Final = ("#1b6ca8", "#d1495b", "#2e8b57", "#e09f3e", "#6a4c93", "#3d405b", "#00a6a6", "#9c6644")
MOST_POINTS: Final = 600

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Series:
    """A named line; with ``dots`` points are not joined."""

    name: str
    points: Points
    dots: bool = False


def plot(title: str, x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """One plot from zero on both axes."""
    far_x = max((x for each in series for x, _ in each.points), default=1.0) or 1.0
    far_y = max((y for each in series for _, y in each.points), default=1.0) * 1.05 or 1.0
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title, quote=True)}">',
        *_axes(x_label, y_label, far_x, far_y),
    ]
    for index, each in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        placed = [(_x(x, far_x), _y(y, far_y)) for x, y in thinned(each.points)]
        parts += _marks(placed, colour, dots=each.dots)
        top = TOP + 14 * index + 8
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{top}" fill="{colour}">{escape(each.name)}</text>')
    return "\n".join([*parts, "</svg>"])


def thinned(points: Points) -> Points:
    """At most `MOST_POINTS` points, evenly chosen; the last one stays."""
    step = -(-len(points) // MOST_POINTS) or 1
    chosen = list(points[::step])
    return chosen if not points or chosen[-1] == points[-1] else [*chosen, points[-1]]


def _marks(placed: Points, colour: str, *, dots: bool) -> list[str]:
    if dots:
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in placed]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    return [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.4"/>']


def _axes(x_label: str, y_label: str, far_x: float, far_y: float) -> list[str]:
    parts = []
    for tick in range(5):
        share = tick / 4
        x, y = _x(far_x * share, far_x), _y(far_y * share, far_y)
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{far_y * share:.3g}</text>',
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{far_x * share:.3g}</text>',
        ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text x="{LEFT}" y="11">{escape(y_label)}</text>')
    return parts


def _x(value: float, far: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / far


def _y(value: float, far: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / far
