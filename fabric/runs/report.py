"""The report of a run: totals, units, channels, faults, and the folder of its files."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from signal import SIGINT

# Any: a field is declared by its default.
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from typing_extensions import override

from fabric.analysis.symbolic.area import Area
from fabric.display.parts import Sheet
from fabric.display.result import ShownInShort
from fabric.graph.arguments.described import checked, refuse
from fabric.graph.wiring.program import TokenPhase
from fabric.messages.errors import (
    ConfigurationError,
    Deadlock,
    FabricError,
    VerificationError,
)
from fabric.messages.output import ExitStatus
from fabric.messages.text import JsonObject
from fabric.runs.counters import Comparison, UnitCounters
from fabric.runs.outputs import Outputs
from fabric.runs.pricing import Spending
from fabric.runs.verification import Verification
from fabric.timing.state.run_state import ChannelState, Ending

if TYPE_CHECKING:
    from fabric.analysis.deadlock.document import DeadlockReport
    from fabric.analysis.trace.opened import Trace
    from fabric.timing.engine.off_chip import MemoryCounters
    from fabric.timing.state.resource_use import NetworkUse


@dataclass(frozen=True)
class Failure:
    """The message of a failed run, and the user's line if known."""

    message: str
    file: str | None
    line: int | None

    @staticmethod
    def of(error: FabricError) -> Failure:
        return Failure(error.message, error.file, error.line)

    def error(self) -> FabricError:
        return FabricError(**vars(self))


SQUARE_MM: Final = "mm\N{SUPERSCRIPT TWO}"

_SPELLED: Final = {
    "explained": "deadlock",
    "failure": "error",
    "spent": "joules_by_cause",
    "area": "area_by_cause",
}
"""Fields that have another name, and plain data, in ``run --json``."""


class Figure(NamedTuple):
    """The label and the unit of a number of a report; the unit of a count is empty."""

    text: str
    unit: str


def _figure(text: str, unit: str = "", *, compare: bool = True) -> Any:
    """Return a field with a label and a unit, which is None by default."""
    return field(default=None, compare=compare, metadata={"figure": Figure(text, unit)})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Report(ShownInShort):
    """The report of one run. ``run --json`` prints its fields, except units, outputs and files.

    Reports of equal runs are equal: ``wall_seconds``, ``log_dir``, ``traced_in`` and ``unwritten``
    are not compared.

    Attributes:
        on_chip_peak_pages: None if the hardware states no ``page_bytes``.
        on_chip_map_bytes: the size, at the peak, of a table with each page's number in its unit.
        on_chip_peak_empty_bytes: the most bytes of allocated pages that buffers did not use in a
            cycle.
        spilled_bytes: bytes of buffers that were stored in the HBM since the on-chip memory was
            full; None if the hardware does not spill.
        fetched_bytes: spilled bytes that were read, counted at each read; None if the hardware does
            not spill.
        channel_bytes: of all slots of channels. Sizes that depend on data count with their mean.
        seconds: on the fabric's clock; None if the hardware has no clock.
        joules: None if one of the causes has no price.
        spent: the energy by cause, empty if nothing has a price.
        area_low_mm2, area_high_mm2: the least and the largest area of the program on a die; None if
            a part of the program has no area. ``area_mm2`` is the root of their product, since
            published areas differ by factors.
        area: the area by cause, empty if nothing has an area.
        stands_for_runs: the number of equal runs, one after the other, that the program represents.
            ``tokens_per_second``, ``tokens_per_joule`` and ``time_to_first_token_seconds`` describe
            all runs together.
        tokens, token_phase: the number of tokens of a run and their phase, as the program states.
        time_to_first_token_seconds: None except for a prefill.
        verified: whether all outputs are as the program expects; None without a comparison.
        verification: the comparison of outputs and streams with the program's expectations; None
            if the program has no expectation.
        signal_to_noise_db: for each output of floats of an exact run, the sum of its squared
            numbers over the sum of the squared errors of the declared types, in decibels; None
            without errors.
        explained: the explanation of a deadlock or livelock.
        failure: the error that ended the run.
        warnings: sentences about faults that did not end the run.
        hbm: counters of the off-chip memory; None if its model has no counters. ``run --json`` has
            its clients by name, and omits the field if it is None.
        network: the use of links between sites; None if the hardware has no ``[network]``.
            ``run --json`` omits the field if it is None.
        units, channels_counters: in node and edge order; an open wait lasts to the end of the run.
        comparison: metrics that were computed before the run, with measured values.
        unwritten: sentences about the parts of the log and the trace that could not be written.
        signal: the signal that interrupted the run or the search for a remedy, or None.
        outputs: the outputs that the run stored, by name; empty if it did not complete.
        traced_in: the folder that ``trace()`` opens; None if the run was not traced.
    """

    program: str
    parameters: JsonObject = field(default_factory=dict)
    hardware: JsonObject | None = None
    mode: str | None = None
    exact: bool = False
    status: Ending = "error"
    cycles: int | None = _figure("cycles")
    off_chip_traffic_bytes: int | None = _figure("off-chip traffic", "bytes")
    on_chip_requirement_bytes: int | None = _figure("on-chip requirement", "bytes")
    off_chip_traffic_artifact_bytes: int | None = _figure(
        "off-chip traffic as the artifact counts", "bytes"
    )
    on_chip_requirement_artifact_bytes: int | None = _figure(
        "on-chip requirement as the artifact counts", "bytes"
    )
    on_chip_peak_bytes: int | None = _figure("on chip at the peak", "bytes")
    on_chip_peak_pages: int | None = _figure("pages at the peak")
    on_chip_map_bytes: int | None = _figure("map of pages at the peak", "bytes")
    on_chip_peak_empty_bytes: int | None = _figure("empty in pages at the peak", "bytes")
    on_chip_wait_cycles: int | None = _figure("waited for pages, all units", "cycles")
    spilled_bytes: int | None = _figure("spilled to the HBM", "bytes")
    fetched_bytes: int | None = _figure("read back from the HBM", "bytes")
    hbm_bytes_moved: int | None = _figure("moved by the HBM", "bytes")
    flops: int | None = _figure("FLOPs")
    allocated_flops_per_cycle: int | None = _figure("allocated compute", "FLOPs/cycle")
    compute_utilization: float | None = _figure("compute utilisation", "fraction")
    off_chip_bandwidth_utilization: float | None = _figure("off-chip bandwidth used", "fraction")
    off_chip_peak_bytes_per_cycle: float | None = None
    operators: int | None = _figure("operators")
    channels: int | None = _figure("channels")
    channel_bytes: int | None = _figure("slots of channels", "bytes")
    elements: int | None = _figure("elements")
    seconds: float | None = _figure("time", "s")
    joules: float | None = _figure("energy", "J")
    spent: tuple[Spending, ...] = ()
    area_mm2: float | None = _figure("area, between low and high", SQUARE_MM)
    area_low_mm2: float | None = _figure("area, low", SQUARE_MM)
    area_high_mm2: float | None = _figure("area, high", SQUARE_MM)
    area: tuple[Area, ...] = ()
    stands_for_runs: int | None = None
    tokens: int | None = None
    token_phase: TokenPhase | None = None
    tokens_per_second: float | None = _figure("tokens per second", "1/s")
    tokens_per_joule: float | None = _figure("tokens per joule", "1/J")
    time_to_first_token_seconds: float | None = _figure("time to first token", "s")
    wall_seconds: float | None = _figure("time to simulate", "s", compare=False)
    log_dir: str | None = field(default=None, compare=False)
    verified: bool | None = None
    verification: Verification | None = None
    signal_to_noise_db: dict[str, float | None] = field(default_factory=dict)
    explained: DeadlockReport | None = None
    failure: Failure | None = None
    extra: JsonObject = field(default_factory=dict)
    # ``run --json`` has the fields up to here.
    warnings: tuple[str, ...] = field(default=(), compare=False)
    hbm: MemoryCounters | None = None
    network: NetworkUse | None = None
    name: str = ""
    units: tuple[UnitCounters, ...] = ()
    channels_counters: tuple[ChannelState, ...] = ()
    comparison: Comparison = Comparison()  # noqa: RUF009 - it cannot be changed
    unwritten: tuple[str, ...] = field(default=(), compare=False)
    signal: int | None = None
    outputs: Outputs = Outputs({})  # noqa: RUF009 - it cannot be changed
    traced_in: RunFolder | None = field(default=None, compare=False)

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Report):
            return NotImplemented
        return self._compared_warnings() == other._compared_warnings() and all(
            _same(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if field.compare
        )

    @override
    def __hash__(self) -> int:
        did = (self.status, self.cycles, self.elements, self.flops, self.hbm_bytes_moved)
        return hash((self.name, self.mode, *did, self.outputs))

    def _compared_warnings(self) -> list[str]:
        return [warning for warning in self.warnings if warning not in self.unwritten]

    @property
    def deadlock(self) -> JsonObject | None:
        """The explanation of a deadlock or livelock, as in ``run --json``; None for other runs."""
        return None if self.explained is None else self.explained.as_json()

    @property
    def error(self) -> JsonObject | None:
        """The failure, as in ``run --json``; None without one."""
        return None if self.failure is None else asdict(self.failure)

    @property
    def joules_by_cause(self) -> dict[str, float | None] | None:
        """The energy of each cause; None if nothing has a price."""
        return {spending.cause: spending.joules for spending in self.spent} or None

    @property
    def area_by_cause(self) -> dict[str, list[float | None]] | None:
        """The area of each cause, low and high; None if nothing has an area."""
        return {part.cause: [part.low_mm2, part.high_mm2] for part in self.area} or None

    @property
    def exit_status(self) -> int:
        """The exit status of the command line."""
        if self.signal is not None:
            return ExitStatus.interrupted(self.signal)
        match self.status:
            case "completed":
                if self.verified is False:
                    return ExitStatus.WRONG
                return ExitStatus.UNWRITTEN if self.unwritten else ExitStatus.COMPLETED
            case "deadlock" | "livelock":
                return ExitStatus.DEADLOCK
            case "interrupted":
                return ExitStatus.interrupted(SIGINT)
            case "error":
                return ExitStatus.WRONG

    @checked
    def trace(self, *, first: bool = False) -> Trace:
        """Open the trace of the run, which ``simulate(..., trace="events")`` records.

        Args:
            first: if the program ran again with deeper channels, open the trace of the first run,
                which stopped. By default, open the trace of the run that this report describes.

        Raises:
            ConfigurationError: nothing was recorded, or the trace was removed.
        """
        expected = 'simulate(..., trace="events")'
        if self.traced_in is None:
            refuse(f"{self!r} has no trace: expected a run of {expected}", ConfigurationError)
        path = self.traced_in.path
        if not path.is_dir():
            refuse(
                f"the trace of {self!r} was removed with {path}: expected {expected} with "
                "log_dir, to keep it",
                ConfigurationError,
            )
        # Most runs are not traced.
        from fabric.analysis.trace.opened import open_trace

        return open_trace(path, first=first)

    def raise_for_status(self) -> None:
        """Raise an error unless the program completed with the right outputs.

        Raises:
            Deadlock: the run is a deadlock or a livelock.
            VerificationError: an output differs from the output that the program expects.
            FabricError: the run failed, or was interrupted.
        """
        if self.explained is not None:
            raise Deadlock(self.explained.summary, report=self.explained.as_json())
        if self.failure is not None:
            raise self.failure.error()
        if self.status == "interrupted":
            raise FabricError(f"program {self.name!r} was interrupted")
        if self.verified is False:
            verification = self.verification or Verification()
            raise VerificationError(
                "\n".join((f"program {self.name!r}: the result is wrong", *verification.lines())),
                verification=verification.as_json(),
            )

    @override
    def __str__(self) -> str:
        from fabric.display.terminal import plain_text

        return plain_text(self.sheet())

    def sheet(self, *, unfold: bool = False) -> Sheet:
        """Yield the report without host data; with ``unfold``, a row for each unit of a family."""
        from fabric.runs.printing import report_sheet

        return report_sheet(self, unfold=unfold)

    @override
    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "name", self.name
        yield "status", self.status
        yield "cycles", self.cycles
        yield "verified", self.verified

    def as_json(self) -> JsonObject:
        """Return the object that ``run --json`` prints."""
        names = [_SPELLED.get(field.name, field.name) for field in fields(self)]
        document = {name: getattr(self, name) for name in names[: names.index("warnings")]}
        if self.verification is not None:
            document["verification"] = self.verification.as_json()
        if self.hbm is not None:
            document["hbm"] = self._hbm(self.hbm)
        if self.network is not None:
            document["network"] = asdict(self.network)
        return document | {"warnings": list(self.warnings)}

    def _hbm(self, counters: MemoryCounters) -> JsonObject:
        from fabric.timing.state.resource_use import as_document

        document = as_document(counters)
        for client in document["clients"]:
            client["unit"] = self.units[client["unit"]].name
        return document


FIGURES: Final[dict[str, Figure]] = {
    field.name: field.metadata["figure"] for field in fields(Report) if field.metadata
}
"""The numbers of a report, by attribute."""


def _same(one: object, other: object) -> bool:
    """Whether two values are equal; arrays are compared by elements, and NaN equals NaN."""
    if hasattr(one, "__array__") or hasattr(other, "__array__"):
        # Reports of programs that cannot be loaded do not wait for numpy.
        import numpy as np

        arrays = np.asarray(one), np.asarray(other)
        if arrays[0].shape != arrays[1].shape:
            return False
        numbers = not any(array.dtype.hasobject for array in arrays)
        if numbers and np.array_equal(*arrays):
            return True
        one, other = (array.tolist() for array in arrays)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if type(one) is not type(other) or len(one) != len(other):
            return False
        return all(_same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - a NaN


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, with an absolute path."""

    path: Path


def passing_folder() -> RunFolder:
    """Make a temporary folder that is removed with the returned object, but not by forks."""
    try:
        folder = RunFolder(Path(tempfile.mkdtemp(prefix="step-fabric-")).absolute())
    except OSError as error:
        raise ConfigurationError(
            f"simulate: the trace needs a folder: {error.strerror}: expected log_dir, or TMPDIR "
            "to name a folder that can be written"
        ) from None
    weakref.finalize(folder, _remove, folder.path, os.getpid())
    return folder


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
