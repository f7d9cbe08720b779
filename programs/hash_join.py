"""A hash join with a sum: orders and the amounts of their items, bucket by bucket on chip.

A key is divided by the number of buckets. The remainder is the key's bucket, and the quotient is
its word in the table of the bucket, so no two keys share a word. A Scatter writes the orders of a
bucket to an on-chip table, and another adds up the amounts of its items in a second table. The
tables are multiplied word by word. ``padded`` reads as many rows for each bucket as the fullest one
has, as static shapes require.

Limits of STeP's operators: no operator looks up a word on chip for each element of a stream, so the
table of a bucket is read as a whole. The program does not distribute rows to buckets: sources of
control data have the references to the rows of each bucket. A row is a separate record, so each row
takes a request of 64 bytes.

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
        orders: rows of the first table, with different keys; at most ``keys``.
        items: rows of the second table.
        keys: the number of possible keys, a multiple of the number of buckets.
        buckets: the number of buckets.
        skew: an item has key k with a probability in proportion to (k + 1) ** -skew.
        rows: the rows of a bucket are ``ragged``, or ``padded`` to the fullest bucket.
        seed: for both tables.
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
    lists = [np.flatnonzero(keys % buckets == bucket).tolist() for bucket in range(buckets)]
    if is_padded:
        most = max(map(len, lists))
        lists = [rows + [len(keys)] * (most - len(rows)) for rows in lists]
    stored = np.append(numbers, 0)[:, np.newaxis]  # padding reads the last row
    places = np.append(keys // buckets, 0)
    references = RaggedIntegers(lists)()  # [1, B, n~]
    values = RandomOffChipLoad(Tensor(stored.shape, stored, dtype="int64"), (1, 1))(references)
    where = RaggedIntegers([places[rows].tolist() for rows in lists])()
    return Scatter(words)(where.assume(*references.shape), values)
