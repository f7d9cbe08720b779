"""Strips: what a design comes to with each of its inputs, as a small picture in a table's cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from fabric.study.outcome import Outcome, metric
from fabric.study.statistics import split_metric
from fabric.study.written.markup import Markup, text
from fabric.study.written.words import label, number_text

if TYPE_CHECKING:
    from fabric.study.result import StudyResult

__all__ = ["strips"]

_WIDTH: Final = 160
_HEIGHT: Final = 18
_MARGIN: Final = 4


def strips(result: StudyResult, designs: Sequence[int]) -> list[tuple[str, list[Markup]]]:
    """Return columns of strips, each with its title and a cell for each design.

    There is one for each metric that is minimised and differs from input to input. A line is an
    input, a short one below an input held out, the dot is the median; all cells have one scale.

    Args:
        result: of a study over inputs; of others there are none.
        designs: in the order of the rows.
    """
    if not result.study.has_inputs:
        return []
    names = dict.fromkeys(split_metric(each)[1] for each in result.study.objectives)
    by_design: dict[int, list[Outcome]] = {}
    for run in result.runs:
        by_design.setdefault(result.study.design_of(run.index), []).append(run)
    found = []
    for name in names:
        rows = [_values(by_design.get(each, []), name) for each in designs]
        values = [value for row in rows for _, value in row]
        if any(len({value for _, value in row}) > 1 for row in rows):
            least, most = min(values), max(values)
            scale = f"{number_text(least)} to {number_text(most)}"
            title = f"{label(name)} with each input, {scale}"
            if least > 0:
                title += " by their logarithms"
            cells = [_strip(result, row, least, most) for row in rows]
            found.append((title, cells))
    return found


def _values(runs: Sequence[Outcome], name: str) -> list[tuple[int, float]]:
    """Return what runs came to, with their indices."""
    values = ((each.index, metric(each, name)) for each in runs)
    return [(index, value) for index, value in values if value is not None]


def _strip(
    result: StudyResult,
    row: Sequence[tuple[int, float]],
    least: float,
    most: float,
) -> Markup:
    study = result.study

    def place(value: float) -> str:
        share = (
            math.log(value / least) / math.log(most / least)
            if least > 0
            else (value - least) / (most - least)
        )
        return f"{_MARGIN + share * (_WIDTH - 2 * _MARGIN):.1f}"

    lines = []
    for index, value in row:
        apart = study.is_held_out(index)
        top, bottom = (_HEIGHT - 6, _HEIGHT) if apart else (2, _HEIGHT - 7)
        colour = "var(--other)" if apart else "var(--front)"
        held_out = ", held out" if apart else ""
        lines.append(
            f'<path d="M{place(value)} {top}V{bottom}" style="stroke:{colour};stroke-width:1.5">'
            f"<title>{text(study.input_name(index))}{held_out}: {number_text(value)}</title></path>"
        )
    chosen = [value for index, value in row if not study.is_held_out(index)]
    told = ""
    if chosen:
        middle = median(chosen)
        told = (
            f"{number_text(min(chosen))} to {number_text(max(chosen))}, "
            f"median {number_text(middle)}"
        )
        lines.append(
            f'<circle cx="{place(middle)}" cy="{(_HEIGHT - 5) / 2}" r="2.5" '
            f'style="fill:var(--front)"><title>median {number_text(middle)}</title></circle>'
        )
    return Markup(
        f'<svg class="inputs" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{text(told)}">{"".join(lines)}</svg>'
    )
