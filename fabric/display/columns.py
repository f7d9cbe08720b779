"""Lays out rows of cells in lines of text, without cutting cells in a narrow terminal."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Final

GAP: Final = 2
"""Characters between two columns."""

_FOLDED: Final = 30
"""The widest column keeps this many characters, or two thirds of its width if these are fewer."""


def width_of(rows: Sequence[Sequence[str]]) -> int:
    """Return the width of ``rows`` if no cell is folded."""
    widths = _widths(rows)
    return sum(widths) + GAP * (len(widths) - 1)


def aligned(rows: Sequence[Sequence[str]], room: int | None, indent: str = "") -> list[str]:
    """Return the lines of ``rows`` with aligned cells, in at most ``room`` characters."""
    room = sys.maxsize if room is None else room - len(indent)
    lines = chain.from_iterable(aligned_rows(rows, room))
    return [(indent + line).rstrip() for line in lines]


def aligned_rows(
    rows: Sequence[Sequence[str]], room: int, right: frozenset[int] = frozenset()
) -> list[list[str]]:
    """Return the lines of each of ``rows``; ``right`` are the right-aligned columns.

    If a row does not fit, its last columns move to further lines, and then text is broken between
    words. Cells may have several lines. A row with fewer cells does not widen columns.
    """
    widths = _widths(rows)
    bands = _bands(widths, _folded_widths(rows, widths), room)
    first = _shortened(rows, widths, room) if len(bands) > 1 else None
    if first is not None:
        bands = [list(enumerate([first, *widths[1:]]))]
    blocks: list[list[str]] = []
    for row in rows:
        lines: list[str] = []
        cells = row
        if len(row) < len(widths):
            text = (" " * GAP).join(map(str.ljust, row, widths)).rstrip()
            lines += [text] if len(text) <= room else textwrap.wrap(text, room)
            cells = ()
        elif first is not None and len(row[0]) > first:
            # A long name has its own line, above its text.
            lines, cells = [row[0]], ("", *row[1:])
        for number, band in enumerate(bands if cells else ()):
            margin = " " * (2 * GAP) if number else ""
            of_band = [(cells[n], width, n in right) for n, width in band]
            if any(cell for cell, *_ in of_band):
                lines += [margin + line for line in _band_lines(of_band)]
        blocks.append([line.rstrip() for line in lines])
    return blocks


def _shortened(rows: Sequence[Sequence[str]], widths: Sequence[int], room: int) -> int | None:
    """Return a width of the first column so that rows fit; None if most names are longer."""
    left = room - sum(width + GAP for width in widths[1:])
    longer = sum(len(row) == len(widths) and len(row[0]) > left for row in rows)
    fits = left >= -(-2 * widths[0] // 3) and widths[0] <= room
    return left if fits and 2 * longer < len(rows) else None


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    full = max((len(row) for row in rows), default=0)
    whole = [row for row in rows if len(row) == full]
    return [
        max((len(line) for row in whole for line in row[n].split("\n")), default=0)
        for n in range(full)
    ]


def _folded_widths(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[int]:
    words = [
        max((len(word) + GAP for row in rows if n < len(row) for word in row[n].split()), default=0)
        for n in range(len(widths))
    ]
    return [
        min(width, max(word, min(_FOLDED, -(-2 * width // 3))))
        for word, width in zip(words, widths, strict=True)
    ]


def _bands(widths: Sequence[int], folded: Sequence[int], room: int) -> list[list[tuple[int, int]]]:
    """Return the lines of a row, each with its columns and their widths."""
    if sum(widths) + GAP * (len(widths) - 1) <= room:
        return [list(enumerate(widths))]
    widest = max(range(len(widths)), key=widths.__getitem__)
    bands: list[list[tuple[int, int]]] = []
    left = -1
    for number, width in enumerate(widths):
        least = folded[number] if number == widest else width
        if not bands or left < least + GAP:
            left = room - (2 * GAP if bands else 0) + GAP
            bands.append([])
        least = min(least, left - GAP)
        bands[-1].append((number, least))
        left -= least + GAP
        if number == widest:
            grown = bands[-1]
    spare = room - (0 if grown is bands[0] else 2 * GAP)
    spare -= sum(width + GAP for _, width in grown) - GAP
    place = next(at for at, (number, _) in enumerate(grown) if number == widest)
    grown[place] = widest, min(widths[widest], grown[place][1] + spare)
    return bands


def _band_lines(cells: Sequence[tuple[str, int, bool]]) -> list[str]:
    folded = [_folded(cell, width) for cell, width, _ in cells]
    return [
        (" " * GAP).join(
            part.rjust(width) if right else part.ljust(width)
            for part, (_, width, right) in zip(parts, cells, strict=True)
        )
        for parts in zip_longest(*folded, fillvalue="")
    ]


def _folded(cell: str, width: int) -> list[str]:
    lines: list[str] = []
    for line in cell.split("\n"):
        if len(line) <= width:
            lines.append(line)
            continue
        margin = " " * (len(line) - len(line.lstrip()) + GAP)
        lines += textwrap.wrap(line, width, subsequent_indent=margin, break_on_hyphens=False)
    return lines
