"""Tables of measured times: interpolated between their rows, refused outside of them."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from fabric.telling.errors import ConfigurationError
from fabric.telling.read_files import open_given

__all__ = ["Lookup", "read_rows"]

Tree: TypeAlias = "dict[float, Tree] | float"


class Lookup:
    """Values at points of a grid that may have gaps; linear along each axis between neighbours.

    The neighbours of a point along an axis are the nearest rows on both sides that go on to the
    point in the axes behind it: a row that does not reach that far is passed over. An axis with
    one row only is none: its value is there for all.
    """

    def __init__(
        self, name: str, axes: Sequence[str], points: Mapping[tuple[float, ...], float], edge: bool
    ) -> None:
        """Know the values of ``points``.

        Args:
            name: of the table, for messages.
            axes: their names.
            points: values by coordinates.
            edge: a point outside is taken at the nearest edge, instead of being refused.

        Raises:
            ConfigurationError: there are no points.
        """
        if not points:
            raise ConfigurationError(f"table {name} has no rows: expected at least one")
        self._outside = 0
        self._name: Final = name
        self._axes: Final = axes
        self._edge: Final = edge
        self._tree: Final[dict[float, Tree]] = {}
        for coordinates, value in points.items():
            node = self._tree
            for each in coordinates[:-1]:
                below = node.setdefault(each, {})
                assert isinstance(below, dict)
                node = below
            node[coordinates[-1]] = value
        self._keys: Final[dict[int, list[float]]] = {}
        self._sort(self._tree)

    def __call__(self, *point: float) -> float:
        """Return the value at a point.

        Raises:
            ConfigurationError: it is outside of the table, or in a gap.
        """
        found = self._at(self._tree, point, False)
        if found is None and self._edge:
            self._outside += 1
            found = self._at(self._tree, point, True)
        if found is None:
            asked = ", ".join(f"{n}={v:g}" for n, v in zip(self._axes, point, strict=True))
            raise ConfigurationError(
                f"table {self._name} has nothing on both sides of {asked}: expected a table that "
                'reaches there, or outside = "edge" to take the nearest of its values'
            )
        return found

    def taken_outside(self) -> int:
        """Return how many points since the last time were taken at the table's edge."""
        outside, self._outside = self._outside, 0
        return outside

    def _sort(self, node: dict[float, Tree]) -> None:
        self._keys[id(node)] = sorted(node)
        for each in node.values():
            if isinstance(each, dict):
                self._sort(each)

    def _at(self, node: Tree, point: Sequence[float], edge: bool) -> float | None:
        if not isinstance(node, dict):
            return node
        keys, rest = self._keys[id(node)], point[1:]
        if len(keys) == 1:
            return self._at(node[keys[0]], rest, edge)
        x = point[0]
        at = bisect_left(keys, x)
        if at < len(keys) and keys[at] == x:
            found = self._at(node[x], rest, edge)
            if found is not None:
                return found
        below = self._nearest(node, keys[:at][::-1], rest, edge)
        above = self._nearest(node, keys[at:], rest, edge)
        if below is None or above is None:
            one = below or above
            return one[1] if edge and one is not None else None
        (x0, y0), (x1, y1) = below, above
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)

    def _nearest(
        self, node: dict[float, Tree], keys: Sequence[float], rest: Sequence[float], edge: bool
    ) -> tuple[float, float] | None:
        """Return the first of ``keys`` with a value, and that value."""
        for key in keys:
            found = self._at(node[key], rest, edge)
            if found is not None:
                return key, found
        return None


def read_rows(
    path: Path, axes: Sequence[str], group: str | None = None
) -> dict[str, dict[tuple[float, ...], float]]:
    """Read a table of CSV with a column for each axis and one ``time_us``.

    Args:
        path: of the file.
        axes: names of columns.
        group: a column whose texts tell several tables apart.

    Returns:
        Microseconds by coordinates, of each group; of "" where there is none.

    Raises:
        ConfigurationError: it cannot be read, lacks a column, a number is none or below 0, or a
            point stands there twice.
    """
    file = str(path)
    try:
        with open_given(path) as opened:
            text = opened.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"cannot be read ({error}): expected a table of times", file=file
        ) from None
    rows = csv.DictReader(io.StringIO(text, newline=""))
    needed = [*axes, "time_us", *([group] if group else [])]
    missing = [each for each in needed if each not in (rows.fieldnames or ())]
    if missing:
        raise ConfigurationError(
            f"has no column {missing[0]}: expected {', '.join(needed)}", file=file, line=1
        )
    found: dict[str, dict[tuple[float, ...], float]] = {}
    for row in rows:
        try:
            *point, microseconds = (float(row[each]) for each in (*axes, "time_us"))
        except (TypeError, ValueError):
            raise ConfigurationError(
                "a number is missing or is none: expected one in each column",
                file=file,
                line=rows.line_num,
            ) from None
        table = found.setdefault(row[group] if group else "", {})
        if not 0 <= microseconds < float("inf") or tuple(point) in table:
            what = "stands there twice" if tuple(point) in table else f"takes {microseconds:g} μs"
            raise ConfigurationError(
                f"a point {what}: expected each once, with a time from 0 on",
                file=file,
                line=rows.line_num,
            )
        table[tuple(point)] = microseconds
    return found
