"""Address generators of the authors' artifact."""

from __future__ import annotations

from typing import Any

from tests.definitions.tensors import at_depth


def expert_addresses(tiles: int, dims: int, experts: Any) -> Any:
    """Return the addresses of all tiles of each expert, one to a group."""
    return at_depth(
        lambda expert: [[address] for address in range(expert * tiles, (expert + 1) * tiles)],
        dims,
        experts,
    )


def cache_read_addresses(stride: int, dims: int, requests: Any, lengths: Any) -> Any:
    """Return the addresses of the tiles of each request's cache."""
    return at_depth(
        lambda request, length: [request * stride + tile for tile in range(length)],
        dims,
        requests,
        lengths,
    )


def filter_last_tile(dims: int, lengths: Any) -> Any:
    """Return {1} for every tile of a request except the last, and {0} for the last."""
    return at_depth(lambda length: [{1}] * (length - 1) + [{0}] * min(length, 1), dims, lengths)
