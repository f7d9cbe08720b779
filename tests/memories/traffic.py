"""The addresses that drove the reference simulator: interleaved streams, and random tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Final

import numpy as np

from tests.memories.replay import Request

DRAM: Final = Path(__file__).parents[2] / "programs" / "data" / "published" / "dram"

_SLOT_BYTES: Final = 1 << 22
_STEP_BYTES: Final = 1 << 13
_REQUEST_BYTES: Final = 64
_RANDOM_BYTES: Final = 1 << 30


def published_starts(number: int) -> list[int]:
    with np.load(DRAM / "one_channel_addresses.npz") as lists:
        places = lists["stream-384" if number > 1 else "stream-1"][:number]
    return [int(place) for place in places]


def starts(number: int, seed: int) -> list[int]:
    steps = np.random.default_rng(seed).integers(0, _SLOT_BYTES // _STEP_BYTES, number)
    return [slot * _SLOT_BYTES + int(step) * _STEP_BYTES for slot, step in enumerate(steps)]


def aligned_starts(number: int) -> list[int]:
    return [slot * _SLOT_BYTES for slot in range(number)]


def streams(
    places: Sequence[int], *, write_fraction: float = 0.0, tile_bytes: int = 8192, seed: int = 0
) -> Iterator[Request]:
    random = np.random.default_rng(seed)
    in_tile = np.arange(tile_bytes // _REQUEST_BYTES)[:, np.newaxis] * _REQUEST_BYTES
    for tile in count():
        addresses = np.array(places) + tile * tile_bytes + in_tile
        writes = random.random(len(places)) < write_fraction
        yield from zip(addresses.reshape(-1).tolist(), writes.tolist() * len(in_tile), strict=True)


def random_tiles(
    number: int, tile_bytes: int, *, write_fraction: float = 0.0, seed: int = 0
) -> Iterator[Request]:
    random = np.random.default_rng(seed)
    in_tile = np.arange(tile_bytes // _REQUEST_BYTES)[:, np.newaxis] * _REQUEST_BYTES
    for _ in repeat(None):
        tiles = random.integers(0, _RANDOM_BYTES // tile_bytes, number) * tile_bytes
        writes = random.random(number) < write_fraction
        yield from zip(
            (tiles + in_tile).reshape(-1).tolist(), writes.tolist() * len(in_tile), strict=True
        )
