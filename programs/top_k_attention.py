"""Attention of a decode step over the tiles of a long cache that a score chooses, or over all.

A summary has the mean of the keys of each tile of 32 tokens. The query of a request is multiplied
by the summary, and the scores are added up over the eight heads that share keys and values. The
``kept`` tiles with the largest sums are chosen, and only their keys and values are loaded. This is
sparse attention as in Quest (Tang et al., ICML 2024), but with means instead of Quest's bounds.
``dense`` reads the whole cache.

Timing mode has no scores. It takes the tiles that ``build`` computes.

Run:      python -m fabric run programs/top_k_attention.py -p context=1024 -p kept=8
Computes: y[r] = softmax(q[r] @ k[r, chosen].T / 8) @ v[r, chosen]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Dim, Program, Tile, TileType
from fabric.extend import ADDRESS_DTYPE, Bounds, number_in
from operators import (
    Accum,
    CacheReadAddresses,
    Div,
    Expand,
    FlatMap,
    Flatten,
    Function,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Metadata,
    Promote,
    RandomOffChipLoad,
    RescaledSum,
    RunningMaximum,
    Scan,
    ShiftedExp,
    SplitCols,
    Tensor,
    wide,
)
from operators.rtl import description

HEAD = 64  # columns of q, k and v
HEADS = 8  # of queries, which share keys and values
ROWS = 32  # tokens of a cache tile


@dataclass(frozen=True)
class LargestTiles(Function):
    """Choose the tiles whose scores have the largest sums over the heads, in ascending order.

    It takes one addition per score, and compares each sum with each kept sum.

    Attributes:
        given: the tiles of each request, for timing mode, [requests, kept].
    """

    mixed_types: ClassVar = True

    given: np.ndarray

    def infer(self, scores: TileType, request: TileType) -> TileType:
        return TileType(1, self.given.shape[1], ADDRESS_DTYPE)

    def flops(self, scores: Tile, request: Tile) -> Dim:
        return (scores.rows + self.given.shape[1]) * scores.cols

    def apply(self, scores: Tile, request: Tile) -> Tile:
        number, kept = number_in(request), self.given.shape[1]
        chosen = self.given[number]
        if scores.data is not None:
            chosen = largest(wide(scores.data), kept)
        places = (chosen + number * scores.cols).astype(ADDRESS_DTYPE)
        return Tile(1, kept, ADDRESS_DTYPE, places[np.newaxis])

    def hardware(self) -> description.Function:
        kept = self.given.shape[1]
        return description.Function(2, lambda *_: (1, kept, 1, kept))


def build(
    requests: Annotated[int, Bounds(1)] = 2,
    context: int = 512,
    kept: int = 4,
    cache: Literal["sparse", "dense"] = "sparse",
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the step.

    Args:
        requests: the number of requests.
        context: tokens of each request's cache, a multiple of 32.
        kept: tiles of each cache that are read, if ``sparse``.
        cache: ``sparse`` reads the chosen tiles, ``dense`` the whole cache.
        seed: for all numbers.
    """
    tiles = context // ROWS
    if context < ROWS or context % ROWS:
        raise ConfigurationError(f"context is {context}: expected a multiple of {ROWS}")
    if not 1 <= kept <= tiles:
        raise ConfigurationError(f"kept is {kept}: expected 1 to {tiles}, the tiles of the context")
    numbers = _Numbers(requests, tiles, seed)

    with Program("top-k-attention", mode="functional", channel_depth=8) as program:
        query = _tensor(numbers.q)  # of 8x64 for each request
        queries = Flatten(0, 1)(LinearOffChipLoad(query, (HEADS, HEAD))())  # [1, B]
        request = Metadata(np.arange(requests))()
        if cache == "sparse":
            summary = LinearOffChipLoad(_tensor(numbers.summary), (tiles, HEAD))()
            scores = Map(Matmul(transposed=True))(queries, Flatten(0, 1)(summary))  # 8 x tiles
            chosen = Map(LargestTiles(numbers.chosen(kept)))(scores, request)  # [1, B] of 1 x kept
            places = FlatMap(SplitCols())(Promote(0)(chosen))  # [1, B, kept] of 1x1
        else:
            places = CacheReadAddresses(tiles)(request, Metadata(np.full(requests, tiles))())
        keys = RandomOffChipLoad(_tensor(numbers.k), (ROWS, HEAD))(places)  # [1, B, n] of 32x64
        values = RandomOffChipLoad(_tensor(numbers.v), (ROWS, HEAD))(places)
        expanded = Expand(1)(Promote(0)(queries), places)
        scores = Map(Matmul(transposed=True))(expanded, keys)  # [1, B, n] of 8x32
        running = Scan(RunningMaximum())(scores)
        weights = Map(ShiftedExp())(scores, running)
        sums = Accum(RescaledSum())(weights, values, running)  # [1, B] of (8x64, 8x1)
        LinearOffChipStore("y")(Promote(0)(Map(Div())(sums)))

    program.expect(y=lambda: numbers.attention(kept if cache == "sparse" else tiles))
    return program


class _Numbers:
    """Queries and caches, drawn so that a few tiles of each request matter most."""

    def __init__(self, requests: int, tiles: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        rounded = np.float32
        self.q = (random.standard_normal((requests, HEADS, HEAD)) / 8).astype(rounded)
        self.k = random.standard_normal((requests, tiles, ROWS, HEAD)).astype(rounded)
        # The topic of a tile moves all of its keys.
        self.k += 2 * random.standard_normal((requests, tiles, 1, HEAD)).astype(rounded)
        self.v = random.standard_normal((requests, tiles, ROWS, HEAD)).astype(rounded)
        self.summary = self.k.mean(axis=2)

    def chosen(self, kept: int) -> NDArray[np.int64]:
        """Return the chosen tiles of each request, ascending."""
        scores = np.einsum("rhd,rtd->rht", self.q, self.summary)
        return np.array([largest(each, kept) for each in scores])

    def attention(self, kept: int) -> NDArray[np.float64]:
        """Return the result of each request, from its tiles with the largest scores."""
        rows = []
        for q, k, v, chosen in zip(self.q, self.k, self.v, self.chosen(kept), strict=True):
            weight = np.exp((q @ k[chosen].reshape(-1, HEAD).T).astype(np.float64))
            rows.append(weight / weight.sum(axis=1, keepdims=True) @ v[chosen].reshape(-1, HEAD))
        return np.concatenate(rows)


def largest(scores: NDArray[np.float32], kept: int) -> NDArray[np.int64]:
    """Return the columns with the largest sums, ascending."""
    order = np.argsort(-scores.sum(axis=0), kind="stable")
    return np.sort(order[:kept])


def _tensor(numbers: NDArray[np.float32]) -> Tensor:
    """Return a matrix in 32 bits: rounding could change the scores that choose tiles."""
    matrix = numbers.reshape(-1, numbers.shape[-1])
    return Tensor(matrix.shape, matrix, dtype="float32")
