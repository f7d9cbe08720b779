"""A hash join with a sum: orders and the amounts of their items, bucket by bucket on chip.

The remainder of a key divided by the number of buckets is its bucket, and the quotient is its word
in the bucket's table, so that no two keys share a word. A bucket's orders are written to a table on
chip, the amounts of its items are added up in another (two Scatters), and the tables are multiplied
word by word. ``padded`` reads every bucket at the size of the fullest one, as static shapes would.

Limits of STeP's operators: no operator looks up a word on chip for each element of a stream, so the
table of a bucket is read as a whole. The pass that deals rows out to buckets is not part of the
program: references to the rows come in buckets from sources of control data. A row is a separate
record, so each is a request of 64 bytes.

Run:      python -m fabric run programs/hash_join.py -p orders=24 -p items=96
Computes: y[key] = rate[key] * the sum of the amounts of the key's items, 0 without an order
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Program, Stream
from fabric.extend import Bounds
from operators import (
    LinearOffChipStore,
    Map,
    Mul,
    RaggedIntegers,
    RandomOffChipLoad,
    Scatter,
    Tensor,
)

Integers = NDArray[np.int64]


def build(
    orders: Annotated[int, Bounds(1)] = 24,
    items: Annotated[int, Bounds(1)] = 96,
    keys: int = 32,
    buckets: Annotated[int, Bounds(1)] = 4,
    skew: float = 1.2,
    rows: Literal["ragged", "padded"] = "ragged",
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the join.

    Args:
        orders: rows of the first table, each with a different key; no more than keys.
        items: rows of the second table.
        keys: number of different keys, a multiple of the number of buckets.
        buckets: their number.
        skew: of the items' keys: key k is drawn in proportion to (k + 1) ** -skew.
        rows: of a bucket, ``ragged`` as they are, or ``padded`` to the fullest bucket.
        seed: of both tables.
    """
    if keys < orders:
        raise ConfigurationError(f"keys is {keys}: expected at least {orders}")
    if keys % buckets:
        raise ConfigurationError(
            f"keys is {keys}: expected a multiple of the number of buckets, {buckets}"
        )
    random = np.random.default_rng(seed)
    ordered = random.permutation(keys)[:orders]
    rates = random.integers(1, 9, orders)
    chances = (np.arange(keys) + 1.0) ** -skew
    bought = random.choice(keys, items, p=chances / chances.sum())
    amounts = random.integers(1, 100, items)
    words, is_padded = keys // buckets, rows == "padded"

    with Program("hash-join", mode="functional", channel_depth=8) as program:
        built = _table(ordered, rates, buckets, words, is_padded)  # [1, B, words] of 1x1
        summed = _table(bought, amounts, buckets, words, is_padded)
        LinearOffChipStore("y")(Map(Mul())(built, summed))

    def reference() -> Integers:
        result = np.zeros((buckets, words), np.int64)
        for key, rate in zip(ordered, rates, strict=True):
            result[key % buckets, key // buckets] = rate * amounts[bought == key].sum()
        return result

    program.expect(y=reference)
    return program


def _table(keys: Integers, numbers: Integers, buckets: int, words: int, is_padded: bool) -> Stream:
    """Sum the numbers of each bucket's rows by key."""
    lists = [np.flatnonzero(keys % buckets == each).tolist() for each in range(buckets)]
    if is_padded:
        most = max(map(len, lists))
        lists = [each + [len(keys)] * (most - len(each)) for each in lists]
    stored = np.append(numbers, 0)[:, np.newaxis]  # padding reads the last row
    places = np.append(keys // buckets, 0)
    rows = RaggedIntegers(lists)()  # [1, B, n~] of references
    values = RandomOffChipLoad(Tensor(stored.shape, stored, dtype="int64"), (1, 1))(rows)
    where = RaggedIntegers([places[each].tolist() for each in lists])()
    return Scatter(words)(where.assume(*rows.shape), values)
