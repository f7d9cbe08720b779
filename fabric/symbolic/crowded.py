"""Streams whose requests meet in few channels, or in many rows of one bank, of a memory with banks.

What is said holds whatever a scheduler does: a request is served by its channel, and two rows of
one bank are opened so many cycles apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from fabric.engine.machine_code import Counters
from fabric.engine.off_chip import Region
from fabric.hardware.banked import BankedDescription
from fabric.layouts.layout import Layout
from fabric.memories.address_mapping import (
    BANK_SHIFT,
    BYTE_VALUES,
    BYTES,
    ROW_SHIFT,
    AddressMapping,
)
from fabric.telling.wording import counted
from fabric.values.value import row_bytes
from fabric.wiring.elaborate import Plan
from fabric.wiring.mistakes import off_chip_tensor_of
from fabric.wiring.operator import Node

__all__ = ["Crowded", "first_addresses"]

_REQUESTS: Final = 1024
"""Of a stream, from its first on."""

_FEW: Final = 4
"""A stream of so many requests a channel uses few channels if it uses less than this part."""

_SLOW: Final = 2
"""A bank that takes so many times as long as all requests would is what they wait for."""

_FIELD: Final = (1 << BANK_SHIFT) - 1


class _Requests(NamedTuple):
    """Where the first requests of a stream are, in order."""

    channels: Counters
    banks: Counters
    rows: Counters


class Crowded:
    """Tells of streams that do not use what the memory has side by side."""

    def __init__(self, plan: Plan) -> None:
        """Look at the loads of ``plan``; at none where its memory has no banks."""
        self._plan: Final = plan
        self._requests: Final[dict[Node, _Requests]] = {}
        hbm = plan.program.hardware.hbm
        if not isinstance(hbm, BankedDescription):
            return
        self._hbm: Final = hbm
        mapping = AddressMapping(hbm)
        for node in plan.nodes:
            addresses = first_addresses(node, plan.memory_map.region(node), hbm)
            if addresses is not None:
                self._requests[node] = _located(addresses, mapping)

    def of(self, node: Node) -> str | None:
        """Say what is wrong with the stream of ``node``, if anything is."""
        requests = self._requests.get(node)
        if requests is None or len(requests.channels) < _FEW * self._hbm.channels:
            return None
        return self._few_channels(requests) or self._one_bank(requests)

    def together(self) -> Iterator[str]:
        """Say where most streams begin, if that is on one bank."""
        begin = {
            (int(channels[0]), int(banks[0]), int(rows[0]))
            for channels, banks, rows in self._requests.values()
        }
        banks = Counter((channel, bank) for channel, bank, _ in sorted(begin))
        for (channel, bank), most in banks.most_common(1):
            if most == 1 or 2 * most <= len(begin):
                return
            yield (
                f"{self._plan.program.place}: {most} of {counted(len(begin), 'place')} from which "
                f"tensors are read are in different rows of bank {bank} of channel {channel}: "
                "expected [placement] stagger_bytes, so that they are on different banks"
            )

    def _few_channels(self, requests: _Requests) -> str | None:
        used, channels = len(np.unique(requests.channels)), self._hbm.channels
        if _FEW * used >= channels:
            return None
        return (
            f"its first requests, {len(requests.channels):,}, are on {used} of "
            f"{counted(channels, 'channel')}: expected other tiles, or a [placement] that spreads "
            "them"
        )

    def _one_bank(self, requests: _Requests) -> str | None:
        hbm, count = self._hbm, len(requests.rows)
        opened = np.unique(np.stack(requests, 1), axis=0)
        banks, rows = np.unique(opened[:, :2], axis=0, return_counts=True)
        worst = int(rows.argmax())
        cycles = (int(rows[worst]) - 1) * hbm.timing.rc_cycles
        busiest = int(np.bincount(requests.channels).max())
        served = float(busiest * hbm.channels * hbm.request_bytes / hbm.peak_bytes_per_cycle)
        if cycles <= _SLOW * max(served, count / hbm.requests_per_bundle):
            return None
        channel, bank = banks[worst].tolist()
        return (
            f"its first requests, {count:,}, are in {counted(int(rows[worst]), 'row')} of "
            f"bank {bank} of channel "
            f"{channel}, which are opened in {counted(cycles, 'cycle')}: expected other "
            "tiles, or a [placement] that spreads them"
        )


def first_addresses(node: Node, region: Region | None, hbm: BankedDescription) -> Counters | None:
    """Return the first addresses that a load asks for; None where data decide them."""
    if region is None or region.write or not node.outputs:
        return None
    layout, tensor = node.outputs[0].layout, off_chip_tensor_of(node)
    if layout is None or tensor is None:
        return None
    if (layout.rows, layout.cols) != tensor.tile or layout.shape[-1] != tensor.columns:
        return None
    row = row_bytes(layout.cols, tensor.dtype)
    each = layout.rows * -(-row // hbm.request_bytes)
    steps = np.arange(0, row, hbm.request_bytes)
    found: list[Counters] = []
    for number in _numbers(layout, -(-_REQUESTS // each)):
        burst = region.burst(layout.rows, row, number)
        rows = np.arange(min(burst.rows, _REQUESTS)) * burst.pitch_bytes
        found.append((burst.address + rows[:, None] + steps[:_REQUESTS]).reshape(-1))
    return np.concatenate(found)[:_REQUESTS]


def _numbers(layout: Layout, count: int) -> list[int]:
    """Return the numbers of the first tiles of ``layout``, counted row-major in its tensor."""
    places = np.arange(min(count, layout.count))
    offsets = np.tile(np.array(layout.start, np.int64), (len(places), 1))
    inside = layout.count
    for trips, step, dim in layout.loops:
        inside //= trips
        if dim is not None:
            offsets[:, dim] += places // inside % trips * step
    *outer, last = layout.shape
    strides = [math.prod(outer[dim + 1 :]) for dim in range(len(outer))]
    down = (offsets[:, :-1] @ np.array(strides, np.int64)) // layout.rows
    numbers: list[int] = (down * (last // layout.cols) + offsets[:, -1] // layout.cols).tolist()
    return numbers


def _located(addresses: Counters, mapping: AddressMapping) -> _Requests:
    numbers = addresses >> mapping.request_shift
    packed = np.zeros_like(numbers)
    for byte in range(BYTES):
        packed ^= mapping.tables[byte * BYTE_VALUES + (numbers >> 8 * byte & BYTE_VALUES - 1)]
    return _Requests(packed & _FIELD, packed >> BANK_SHIFT & _FIELD, packed >> ROW_SHIFT)
