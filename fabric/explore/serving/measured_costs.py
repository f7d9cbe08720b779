"""Step costs interpolated from tables of measured layer times."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from fabric.explore.serving.requests import table_text
from fabric.explore.serving.server import Batch, Count, Price
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted

_Node: TypeAlias = "tuple[list[float], list[_Node]] | float"
"""Ascending coordinates on an axis, with a node of the next axis for each; or a point's value."""

_SECONDS: Final = 1e-6


class Lookup:
    """Linear interpolation on a grid that may have gaps.

    The neighbours of a point along an axis are the nearest rows on both sides that cover the point
    in the later axes. An axis with a single row is constant.
    """

    def __init__(
        self, name: str, axes: Sequence[str], points: Mapping[tuple[float, ...], float], edge: bool
    ) -> None:
        """Store the values of ``points``; ``edge``: points outside take the value at the edge."""
        if not points:
            raise ConfigurationError(f"table {name} has no rows: expected at least one")
        self._outside = 0
        self._name: Final = name
        self._axes: Final = axes
        self._edge: Final = edge
        self._root: Final = _node(sorted(points.items()))

    def __call__(self, *point: float) -> float:
        value = self._at(self._root, point, False)
        if value is None and self._edge:
            self._outside += 1
            value = self._at(self._root, point, True)
        if value is None:
            place = ", ".join(f"{n}={v:g}" for n, v in zip(self._axes, point, strict=True))
            raise ConfigurationError(
                f"table {self._name} does not cover {place}: expected values on both sides, or "
                'outside = "edge" to take the nearest value'
            )
        return value

    def taken_outside(self) -> int:
        """Return the number of points outside of the table since the last call."""
        outside, self._outside = self._outside, 0
        return outside

    def _at(self, node: _Node, point: Sequence[float], edge: bool) -> float | None:
        if not isinstance(node, tuple):
            return node
        (keys, nodes), rest = node, point[1:]
        if len(keys) == 1:
            return self._at(nodes[0], rest, edge)
        x = point[0]
        at = bisect_left(keys, x)
        if at < len(keys) and keys[at] == x:
            value = self._at(nodes[at], rest, edge)
            if value is not None:
                return value

        def nearest(places: Iterable[int]) -> tuple[float, float] | None:
            for place in places:
                value = self._at(nodes[place], rest, edge)
                if value is not None:
                    return keys[place], value
            return None

        below, above = nearest(range(at - 1, -1, -1)), nearest(range(at, len(keys)))
        if below is None or above is None:
            only = below or above
            return only[1] if edge and only is not None else None
        (x0, y0), (x1, y1) = below, above
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def _node(points: Sequence[tuple[tuple[float, ...], float]]) -> _Node:
    coordinates, value = points[0]
    if not coordinates:
        return value
    groups = {
        x: [(at[1:], value) for at, value in group]
        for x, group in groupby(points, lambda point: point[0][0])
    }
    return list(groups), list(map(_node, groups.values()))


def read_rows(
    path: Path, axes: Sequence[str], group: str | None = None
) -> dict[str, dict[tuple[float, ...], float]]:
    """Read microseconds by coordinates from CSV with a column for each axis and ``time_us``.

    Rows with the same text in the column ``group`` are a table. Without ``group``, all rows are
    one table, with the name "".
    """
    file = str(path)
    rows = csv.DictReader(io.StringIO(table_text(path, "a table of times"), newline=""))
    needed = [*axes, "time_us", *([group] if group else [])]
    missing = [each for each in needed if each not in (rows.fieldnames or ())]
    if missing:
        raise ConfigurationError(
            f"has no column {missing[0]}: expected {', '.join(needed)}", file=file, line=1
        )
    tables: dict[str, dict[tuple[float, ...], float]] = {}
    for row in rows:
        try:
            *point, microseconds = (float(row[each]) for each in (*axes, "time_us"))
        except (TypeError, ValueError):
            raise ConfigurationError(
                "a cell is not a number: expected a number in each column",
                file=file,
                line=rows.line_num,
            ) from None
        table = tables.setdefault(row[group] if group else "", {})
        if not 0 <= microseconds < float("inf") or tuple(point) in table:
            fault = "is repeated" if tuple(point) in table else f"takes {microseconds:g} μs"
            raise ConfigurationError(
                f"a point {fault}: expected each point once, with a finite time of at least 0",
                file=file,
                line=rows.line_num,
            )
        table[tuple(point)] = microseconds
    return tables


@dataclass(frozen=True, kw_only=True)
class TableDescription(Section):
    """Tables of layer times, in microseconds, and the model and machine they belong to.

    Ranks are replicas that step together and share the experts. Each rank has ``experts / ranks``
    experts and receives, on average, ``1 / ranks`` of all pairs of a token and an expert. Each
    token goes to all ranks before the experts, and its sum returns after the experts: a link
    carries ``exchange_bytes_per_token`` each way.

    Attributes:
        attention: times by ``prefill_chunk`` (prompt tokens of the step), ``kv_prefill`` (tokens
            in the prompts' caches before the step), ``n_decode`` (generating requests) and
            ``kv_decode`` (mean tokens in their caches).
        dense: times by ``layer`` and ``tokens``.
        moe: times by ``tokens`` and ``activated_experts``; None for a model without experts.
        per_sequence: times by ``layer`` and ``sequences``, each spent once in a step.
        layers: number of layers of the model.
        in_each_layer: how often a layer of the model has each layer of ``dense``.
        in_each_step: how often a step has each layer of ``dense``.
        experts, experts_of_a_token: experts in a layer, and experts that a token chooses.
        exchange_bytes_per_token: bytes between ranks, each way.
        link_bytes_per_second, link_latency_seconds: rate and latency between two ranks.
        graph_tokens: sizes that steps are padded to, ascending; larger steps are not padded.
            All ranks are padded to the same size.
        outside: points outside a table are refused, or take the value at its ``edge``.
    """

    attention: Path
    dense: Path
    moe: Path | None = None
    per_sequence: Path | None = None
    layers: Count
    in_each_layer: Mapping[str, int]
    in_each_step: Mapping[str, int]
    experts: Count = 1
    experts_of_a_token: Count = 1
    exchange_bytes_per_token: Annotated[float, Bounds(0)] = 0.0
    link_bytes_per_second: Annotated[float, Bounds(1)] | None = None
    link_latency_seconds: Annotated[float, Bounds(0)] = 0.0
    graph_tokens: tuple[Count, ...] = ()
    outside: Literal["refused", "edge"] = "refused"


class LayerTables:
    """The ``StepCost`` of tables of layer times."""

    def __init__(self, described: TableDescription) -> None:
        """Read the tables.

        Raises:
            ConfigurationError: a table is malformed, or a named layer is missing.
        """
        self._described: Final = described
        self._attention: Final = self._table(
            described.attention, ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")
        )
        self._dense: Final = self._tables(described.dense, "tokens")
        for name in (*described.in_each_layer, *described.in_each_step):
            if name not in self._dense:
                raise ConfigurationError(
                    f"has no layer {name}: expected the layers of in_each_layer and in_each_step",
                    file=str(described.dense),
                )
        self._moe: Final = (
            None
            if described.moe is None
            else self._table(described.moe, ("tokens", "activated_experts"))
        )
        self._sequences: Final = (
            self._tables(described.per_sequence, "sequences") if described.per_sequence else {}
        )
        self._of_layer, self._of_step = (
            lru_cache(maxsize=None)(partial(self._dense_time, numbers))
            for numbers in (described.in_each_layer, described.in_each_step)
        )

    def cost(self, batches: Sequence[Batch]) -> Price:
        """Return the cost of a step. In each layer, ranks wait for the slowest rank."""
        described = self._described
        ranks = len(batches)
        # An idle rank steps with one token.
        real = [max(1, each.tokens) for each in batches]
        padded = self._padded(real)
        own = max(
            self._of_layer(tokens) + self._attention_of(batch)
            for tokens, batch in zip(padded, batches, strict=True)
        )
        layer = own * _SECONDS
        if self._moe is not None:
            layer += self._experts_of(sum(padded), sum(real), ranks) * _SECONDS
        if ranks > 1:
            layer += 2 * self._exchange_seconds(max(padded))
        sequences = max(1, *(each.sequences for each in batches))
        once = self._of_step(max(padded)) + sum(
            each(sequences) for each in self._sequences.values()
        )
        return Price(described.layers * layer + once * _SECONDS)

    def notes(self) -> Sequence[str]:
        layers = counted(self._described.layers, "layer")
        note = f"the cost of a step is the measured time of {layers}"
        edge = "; outside of a table, the value at its edge is used"
        return (note + edge if self._described.outside == "edge" else note,)

    def taken_outside(self) -> int:
        """Return the number of lookups outside of tables since the last call."""
        tables = [self._attention, *self._dense.values(), *self._sequences.values()]
        tables += [] if self._moe is None else [self._moe]
        return sum(each.taken_outside() for each in tables)

    def _table(self, path: Path, axes: Sequence[str]) -> Lookup:
        rows = read_rows(path, axes).get("", {})
        return Lookup(path.name, axes, rows, self._described.outside == "edge")

    def _tables(self, path: Path, axis: str) -> dict[str, Lookup]:
        edge = self._described.outside == "edge"
        return {
            name: Lookup(f"{path.name}, {name}", (axis,), rows, edge)
            for name, rows in read_rows(path, (axis,), "layer").items()
        }

    def _padded(self, tokens: Sequence[int]) -> Sequence[int]:
        most = max(tokens)
        size = next((size for size in self._described.graph_tokens if size >= most), None)
        return tokens if size is None else [size] * len(tokens)

    def _dense_time(self, numbers: Mapping[str, int], tokens: int) -> float:
        return sum(number * self._dense[name](tokens) for name, number in numbers.items())

    def _attention_of(self, batch: Batch) -> float:
        if not batch.tokens:
            return 0.0
        chunk = batch.prefill_tokens
        before = sum(tokens * cached for tokens, cached in batch.prefills) / chunk if chunk else 0
        decodes = len(batch.decodes)
        return self._attention(chunk, before, decodes, sum(batch.decodes) / max(1, decodes))

    def _experts_of(self, padded: int, real: int, ranks: int) -> float:
        # Tokens are assumed to choose experts evenly.
        assert self._moe is not None
        described = self._described
        unused_by_token = 1 - described.experts_of_a_token / described.experts
        active = described.experts / ranks * (1 - unused_by_token**real)
        tokens = max(1.0, padded / ranks)
        # A single token activates all experts that it chooses.
        least = described.experts_of_a_token / ranks
        return self._moe(tokens, max(active, least))

    def _exchange_seconds(self, tokens: int) -> float:
        described = self._described
        if described.link_bytes_per_second is None:
            return described.link_latency_seconds
        size = tokens * described.exchange_bytes_per_token
        return described.link_latency_seconds + size / described.link_bytes_per_second
