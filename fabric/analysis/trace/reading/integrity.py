"""Checks of the files of a trace, which may come from an untrusted sender.

A table that lacks a column, or has a value that no run writes, is damaged.
"""

from __future__ import annotations

from itertools import chain

# Any: parameters of the program, which are displayed.
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from fabric.analysis.trace.database import literal
from fabric.messages.causes import WAITS, Operation
from fabric.messages.text import JsonObject, json_fault
from fabric.timing.engine import log

_LARGEST: Final = (1 << 63) - 1

_Number = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]

_SITES: Final = 1024

_Coordinate = Annotated[int, msgspec.Meta(ge=0, lt=_SITES)]

_Site = tuple[_Coordinate, _Coordinate]

_MOST: Final = 1 << 53
"""Limit of cycles and counts, and the largest exact integer in JSON readers."""


class Form(NamedTuple):
    """A column of a file: its type, a condition for its values, and the value that means null."""

    type: str
    condition: str
    null: str = ""


_ROW: Final = Form("BIGINT", "{} = row")
_COUNT: Final = Form("BIGINT", f"{{}} BETWEEN 0 AND {_MOST}")
_NONE_YET: Final = Form("BIGINT", f"{{}} BETWEEN -1 AND {_MOST}", "-1")
_SIGNED: Final = Form("BIGINT", f"{{}} BETWEEN {-_MOST} AND {_MOST}")
_UNIT: Final = Form("BIGINT", "{} BETWEEN 0 AND (SELECT count(*) - 1 FROM units)")
_CHANNEL: Final = Form("BIGINT", "{} BETWEEN 0 AND (SELECT count(*) - 1 FROM channels)")
_ANY_CHANNEL: Final = Form("BIGINT", "{} BETWEEN -1 AND (SELECT count(*) - 1 FROM channels)")
_TRUTH: Final = Form("BOOLEAN", "{} IS NOT NULL")
_TEXT: Final = Form("VARCHAR", "{} IS NOT NULL")
_SHOWN: Final = Form("VARCHAR", r"NOT regexp_matches({}, '[\p{{C}}\p{{Zl}}\p{{Zp}}]')")


class TracedMemory(msgspec.Struct, frozen=True):
    """The off-chip memory. ``tensors``: bytes to read a tensor once, and the units that read it."""

    request_bytes: _Number
    peak_bytes_per_cycle: Annotated[float, msgspec.Meta(ge=0, le=_LARGEST)]
    clients: list[_Number]  # numbers of the units that it serves
    tensors: list[tuple[int, Annotated[list[_Number], msgspec.Meta(min_length=1)]]]


class _OnChip(msgspec.Struct, frozen=True):
    capacity_bytes: _Number | None = None
    page_bytes: _Number | None = None
    unit_bytes: _Number = 0


class _Channel(msgspec.Struct, frozen=True):
    interval_cycles: _Number = 0


_OneCycle = Annotated[int, msgspec.Meta(ge=0, le=1)]


class _Registers(msgspec.Struct, frozen=True):
    wait_cycles: _OneCycle = 0
    end_cycles: _OneCycle = 0


class MeshSize(msgspec.Struct, frozen=True):
    columns: Annotated[int, msgspec.Meta(ge=1, le=_SITES)] = 1
    rows: Annotated[int, msgspec.Meta(ge=1, le=_SITES)] = 1


class _Hardware(msgspec.Struct, frozen=True):
    on_chip: _OnChip = _OnChip()
    channel: _Channel = _Channel()
    registers: _Registers = _Registers()
    network: MeshSize = MeshSize()


class Flow(msgspec.Struct, frozen=True):
    """A route or a tree of routes, by the numbers of its links and channels."""

    links: Annotated[tuple[_Number, ...], msgspec.Meta(min_length=1)]
    channels: Annotated[tuple[_Number, ...], msgspec.Meta(min_length=1)]


class SharedLinks(msgspec.Struct, frozen=True):
    """Links that channels share; capacities are bytes a cycle. A channel is in one flow or none."""

    capacities: tuple[Annotated[int, msgspec.Meta(ge=1, le=1 << 20)], ...] = ()
    flows: tuple[Flow, ...] = ()

    @property
    def channels(self) -> list[int]:
        return sorted(channel for flow in self.flows for channel in flow.channels)

    def __post_init__(self) -> None:
        """Refuse unknown links, and channels or links that occur twice."""
        if len({*self.channels}) < len(self.channels):
            raise ValueError("a channel is in several flows")
        for flow in self.flows:
            if len({*flow.links}) < len(flow.links) or max(flow.links) >= len(self.capacities):
                raise ValueError("a route takes a link twice, or an unknown link")


class Head(msgspec.Struct, frozen=True):
    """The fields of ``meta.json`` used in computations; the remaining ones are only displayed."""

    name: str
    off_chip: TracedMemory
    functions: list[str]  # the operator of each unit, with the functions that it applies
    streams: list[str]  # the label of each channel in pictures
    hardware: _Hardware = _Hardware()
    parameters: dict[str, Any] = {}
    window: tuple[_Number, _Number] | None = None
    nodes: str | None = None
    shared_links: SharedLinks = SharedLinks()

    def fits(self, units: int, channels: int) -> bool:
        """Whether its lists fit these counts, and its numbers are units and channels of the run."""
        readers = chain.from_iterable(units for _, units in self.off_chip.tensors)
        return (
            (len(self.functions), len(self.streams)) == (units, channels)
            and max(chain(self.off_chip.clients, readers), default=-1) < units
            and max(self.shared_links.channels, default=-1) < channels
        )


def head_in(meta: JsonObject) -> Head | None:
    """Return the fields used in computations; None if a field of ``meta`` is damaged."""
    try:
        return None if json_fault(meta) else msgspec.convert(meta, Head)
    except msgspec.ValidationError:
        return None


class LinkLoad(msgspec.Struct, frozen=True):
    """The load of a limited link; a link inside a site has equal ends."""

    name: str
    source: _Site
    target: _Site
    bytes: _Number
    share: Annotated[float, msgspec.Meta(ge=0, lt=2)]  # of its capacity
    channels: tuple[str, ...]  # the first of the ``users``
    users: _Number


class End(msgspec.Struct, frozen=True):
    """The end of a run, from ``end.json``."""

    status: str
    cycles: _Number
    shutdown_cycles: _Number | None = None  # from the memory's last client to its stop
    hbm: JsonObject | None = None  # counters of the off-chip memory
    verified: bool | None = None
    closeness: str = ""
    priced: dict[str, list[list[str]]] = {}  # rows of text about seconds and joules, by table
    links: list[LinkLoad] = []  # limited links of a network
    on_chip_bytes: list[Annotated[int, msgspec.Meta(ge=0)]] = []  # of each unit, if recorded


def end_in(stored: JsonObject | None, units: int) -> End | None:
    """Return the end of a run of ``units`` units; None if it is missing or damaged."""
    try:
        end = msgspec.convert(stored, End)
    except msgspec.ValidationError:
        return None
    return end if len(end.on_chip_bytes) in (0, units) else None


def _one_of(words: tuple[str, ...]) -> Form:
    return Form("VARCHAR", f"{{}} IN ({', '.join(map(literal, ('', *words)))})", "''")


FORMS: Final[dict[str, dict[str, Form]]] = {
    "units": {
        "unit": _ROW,
        "name": _SHOWN,
        "operator": _SHOWN,
        "kind": _SHOWN,
        "file": _TEXT,
        "line": _COUNT,
        "flops_per_cycle": _COUNT,
    },
    "channels": {
        "channel": _ROW,
        "name": _SHOWN,
        "reader": _SHOWN,
        "depth": Form("BIGINT", f"{{}} BETWEEN 1 AND {_MOST}"),
        "forward_cycles": _COUNT,
        "backward_cycles": _COUNT,
        "producer": _UNIT,
        "consumer": _UNIT,
        "expected": _NONE_YET,
        "carries": _SHOWN,
    },
    "columns": dict.fromkeys(("table", "column", "unit", "meaning"), _SHOWN),
    "operations": {
        "unit": _UNIT,
        "operation": Form("BIGINT", f"{{}} BETWEEN 0 AND {log.ALLOCATE}"),
        "channel": _ANY_CHANNEL,
        "amount": _COUNT,
        "stop": _SIGNED,
        "cycle": _COUNT,
        "waited": _COUNT,
    },
    "window": {"channel": _CHANNEL, "omitted": _COUNT},
    "states": {
        "unit": _ROW,
        "cycle": _COUNT,
        "busy_cycles": _COUNT,
        "flops": _COUNT,
        "finished": _TRUTH,
        "waits_for": _one_of(tuple(Operation)),
        "any_of": _TRUTH,
        "wanted_bytes": _COUNT,
        "held_bytes": _COUNT,
        "since_cycle": _NONE_YET,
        "cause": _one_of(WAITS),
        "channel": _ANY_CHANNEL._replace(null="-1"),
        "requests": _COUNT,
        "next_place": _COUNT,
    },
    "waiting": {
        "unit": _UNIT,
        "channel": _CHANNEL,
        "elements": _COUNT,
        "held": _COUNT,
        "closed_cycle": _NONE_YET,
        "in_all": _SHOWN._replace(null="''"),
        "shape": _SHOWN._replace(null="''"),
        "per_output": _NONE_YET,
        "feedback": Form("VARCHAR", r"regexp_matches({}, '(?s)^(|.*:[0-9]{{1,9}})$')", "''"),
        "seen_stop": _NONE_YET,
        "awaited_stop": _NONE_YET,
    },
}
"""The columns of each file, by its name."""


def selected(form: str, file: str) -> str:
    """Return SQL for the rows of a file, with nulls; it fails at a row that no run writes."""
    tests, values = [], []
    for name, column in FORMS[form].items():
        cell = f'"{name}"'
        invalid = f"({column.condition.format(cell)}) IS NOT TRUE"
        tests.append(f"WHEN {invalid} THEN error('a {name} in it is invalid')")
        values.append(f"nullif({cell}, {column.null}) AS {cell}" if column.null else cell)
    return f"(SELECT {', '.join(values)} FROM {file} WHERE CASE {' '.join(tests)} ELSE true END)"
