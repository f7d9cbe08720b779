"""Compares the banked memory with published measurements of a reference simulator."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from fabric.graph.hardware.memory_models import BankedDescription
from fabric.timing.engine.off_chip import counters_of
from tests.memories import traffic
from tests.memories.replay import Answers, Request, at_rate, clients, saturated

Preset: TypeAlias = Literal["HBM2 1600 Mbps", "HBM2 2000 Mbps", "HBM2 2400 Mbps", "HBM3 6400 Mbps"]

Row: TypeAlias = Mapping[str, str]

# The reference simulator ran this many cycles before its measurement.
WARM_UP_CYCLES: Final = 2_000

# Requests in flight in each channel.
OUTSTANDING: Final = 64

LISTS: Final = ("stream-1", "stream-2", "stream-8", "stream-64", "stream-384", "rand64-64")

TABLES: Final = (
    "hbm2_saturated",
    "hbm2_read_write_mix",
    "hbm2_open_loop",
    "hbm2_fabric_clients",
    "hbm2_variants",
    "hbm3",
)

# The streams of these rows begin at other addresses, or the end of the measurement cuts them off.
_LONG_TILES: Final = {"131072", "3145728"}

_FEW: Final = {"4", "8", "16"}

_DIVERGES_CYCLES: Final = 1000

_MAPPINGS: Final = {
    "interleaved+hash": "interleaved with hash",
    "interleaved": "interleaved",
    "RoBaRaCoCh": "row-bank-rank-column-channel",
}
_PRESETS: Final[dict[str, Preset]] = {
    "HBM2_1600Mbps": "HBM2 1600 Mbps",
    "HBM2_2000Mbps": "HBM2 2000 Mbps",
    "HBM2_2400Mbps": "HBM2 2400 Mbps",
    "HBM3_6400Mbps": "HBM3 6400 Mbps",
}
# ``interleaved with hash`` for HBM3: the stack is the top bit of a bank group, below the row.
_HBM3_MAPPING: Final = (
    "channel ^ above",
    "pseudo_channel ^ row[4:5]",
    "bank_group:2 ^ row[0:2]",
    "column",
    "bank ^ row[2:4]",
    "bank_group",
    "row",
)

_ORGANIZATIONS: Final = {"HBM2_8Gb", "HBM3_16Gb_8hi"}


class Compared(NamedTuple):
    reference: float
    measured: float

    @property
    def error(self) -> float:
        return self.measured / self.reference - 1


def rows(table: str, **stated: str) -> list[Row]:
    with (traffic.DRAM / f"{table}.csv").open(encoding="utf-8", newline="") as lines:
        return [
            row for row in csv.DictReader(lines) if all(row[key] == stated[key] for key in stated)
        ]


def description(row: Row) -> BankedDescription:
    return BankedDescription(
        preset=_PRESETS[row["timing_preset"]],
        channels=int(row["channels"]),
        mapping=_MAPPINGS[row["mapping"]] if row["standard"] == "HBM2" else _HBM3_MAPPING,
        refreshes=row["refresh"] != "none",
        read_window_bursts=int(row["buffer"]),
        write_window_bursts=int(row["buffer"]),
        requests_per_bundle=int(row["requests_per_cycle"] or 1),
    )


def requests(row: Row, seed: int) -> Iterator[Request]:
    number, tile_bytes = int(row["streams"]), int(row["tile_bytes"])
    writes = float(row["write_fraction"])
    if row["pattern"] == "stream":
        return traffic.streams(
            places(row, seed), tile_bytes=tile_bytes, write_fraction=writes, seed=seed
        )
    return traffic.random_tiles(number, tile_bytes, write_fraction=writes, seed=seed)


def places(row: Row, seed: int) -> list[int]:
    number = int(row["streams"])
    if row["aligned"] == "1":
        return traffic.aligned_starts(number)
    return traffic.published_starts(number) if seed == 1 else traffic.starts(number, seed)


def replayed(row: Row, seed: int) -> Answers:
    hbm = description(row)
    until_cycle = end_cycle(row)
    if row["mode"] == "saturated":
        outstanding = int(row["outstanding_per_channel"]) * hbm.channels
        return saturated(hbm, requests(row, seed), outstanding, until_cycle=until_cycle)
    if row["mode"] == "fabric clients":
        tile_bytes = int(row["tile_bytes"])
        return clients(hbm, places(row, seed), tile_bytes, until_cycle=until_cycle)
    peak = float(hbm.peak_bytes_per_cycle) / hbm.request_bytes
    rate = float(row["offered"]) * peak
    return at_rate(
        hbm, requests(row, seed), rate, until_cycle=until_cycle, most_waiting=512 * hbm.channels
    )


def end_cycle(row: Row) -> int:
    return WARM_UP_CYCLES + round(float(row["cycles"]))


def compared(row: Row, seeds: Sequence[int] = (1,)) -> Compared:
    measured = fmean(
        replayed(row, seed).bytes_per_cycle(WARM_UP_CYCLES, end_cycle(row)) for seed in seeds
    )
    return Compared(float(row["bytes_per_cycle"]), measured)


# The reference measured a longer run; this function measures whole intervals between refreshes.
def one_channel(name: str, *, refreshes: bool) -> tuple[Compared, Compared]:
    pattern, number = name.split("-")
    refresh = "allbank" if refreshes else "none"
    (row,) = rows("one_channel_reference", pattern=pattern, streams=number, refresh=refresh)
    with np.load(traffic.DRAM / "one_channel_addresses.npz") as lists:
        addresses = lists[name].tolist()
    hbm = BankedDescription(channels=1, refreshes=refreshes)
    answers = saturated(hbm, ((address, False) for address in addresses), OUTSTANDING)
    interval = hbm.dram.refi_cycles
    # After the last request has arrived, fewer and fewer requests are in flight.
    intervals = (int(answers.arrived.max()) - WARM_UP_CYCLES) // interval
    end = WARM_UP_CYCLES + intervals * interval
    bandwidth = answers.bytes_per_cycle(WARM_UP_CYCLES, end)
    return (
        Compared(float(row["bytes_per_cycle"]), bandwidth),
        Compared(float(row["controller_latency_cycles"]), controller_latency(answers)),
    )


def controller_latency(answers: Answers) -> float:
    counters = counters_of(answers.memory)
    assert counters is not None
    cycles = sum(each.waiting_cycles + each.serving_cycles for each in counters.clients)
    return cycles / sum(each.requests for each in counters.clients)


# Two kinds of rows are left out. Open-loop rows that diverge in the reference measure saturation.
# For rows with few requests in flight, a client here takes three cycles for the next request.
def lines(table: str) -> list[Row]:
    return [
        row
        for row in rows(table)
        if row["mapping"] in _MAPPINGS
        and row["org_preset"] in _ORGANIZATIONS
        and row["refresh"] != "perbank"
        and row["scheduler"] == "FRFCFS"
        and row["outstanding_per_channel"] not in _FEW
        and (row["standard"] == "HBM2" or row["mapping"] == "interleaved+hash")
        and (row["tile_bytes"] not in _LONG_TILES or row["aligned"] == "1")
        and not (row["mode"] == "open loop" and float(row["latency_avg"]) > _DIVERGES_CYCLES)
    ]


def named(row: Row) -> str:
    keys = (
        "timing_preset",
        "channels",
        "mapping",
        "refresh",
        "buffer",
        "outstanding_per_channel",
        "pattern",
        "streams",
        "requests_per_cycle",
        "write_fraction",
        "offered",
        "aligned",
    )
    return " ".join(row[key] for key in keys if row[key])
