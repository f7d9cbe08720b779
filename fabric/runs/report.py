"""The account of a run: totals, units, channels, what went wrong, and the folder of its files."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.analysis.symbolic.area import Area
from fabric.graph.arguments.described import checked, refuse
from fabric.graph.wiring.program import TokenPhase
from fabric.messages.telling.errors import (
    ConfigurationError,
    Deadlock,
    FabricError,
    VerificationError,
)
from fabric.messages.telling.plain import JsonObject
from fabric.messages.telling.sheet import in_short, shown
from fabric.messages.terminal.output import ExitStatus
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
    """The message of a failed run, and its line if known."""

    message: str
    file: str | None
    line: int | None

    @staticmethod
    def of(error: FabricError) -> Failure:
        """Return what a report keeps of ``error``."""
        return Failure(error.message, error.file, error.line)

    def error(self) -> FabricError:
        """Return an error that says the same."""
        return FabricError(self.message, file=self.file, line=self.line)


_BESIDE_THE_TABLE: Final = frozenset(
    {
        "name",
        "units",
        "channels_counters",
        "comparison",
        "unwritten",
        "signal",
        "outputs",
        "traced_in",
        "hbm",
        "network",
    }
)

_OF_THE_HOST: Final = frozenset({"wall_seconds", "log_dir", "warnings", "unwritten", "traced_in"})
"""Fields that two runs of one thing may differ in; of the warnings, what could not be written."""


_SPELLED: Final = {
    "explained": "deadlock",
    "failure": "error",
    "spent": "joules_by_cause",
    "area": "area_by_cause",
}
"""Fields that ``run --json`` has as plain data, and what it calls them."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Report:
    """One run. ``run --json`` has its attributes as fields, but for units, outputs and files.

    Reports are equal if the runs did the same, however long they took and wherever they are kept:
    ``wall_seconds``, ``log_dir`` and ``unwritten`` do not count. They are hashed accordingly.

    Attributes:
        name: the program's name.
        on_chip_peak_bytes: the most that was held on chip in any cycle.
        on_chip_peak_pages: the most pages that were; None if the hardware states no
            ``page_bytes``.
        on_chip_map_bytes: of a map with the number of each of these pages in its memory unit.
        on_chip_peak_empty_bytes: the most bytes that held pages left empty in any cycle.
        on_chip_wait_cycles: waited for pages, over all units.
        spilled_bytes: of tiles of buffers that found no room on chip; None if the hardware does not
            spill.
        fetched_bytes: of such tiles, each time they were read; likewise.
        seconds: the length of the run on the fabric's clock; None if the hardware has no clock.
        joules: the energy of the run; None if one of its causes has no price.
        spent: the energy by cause, empty if nothing has a price; ``joules_by_cause`` is the same as
            plain data.
        channel_bytes: the slots of all channels times the bytes of a value; of sizes that data
            decide, their mean.
        area_low_mm2, area_high_mm2: what the program takes of a die, as a range; None if a part of
            it has no area. ``area_mm2`` is between them, the root of their product: sources
            differ by factors.
        area: the same by cause, empty if nothing has an area; ``area_by_cause`` is the same as
            plain data.
        stands_for_runs: how many equal runs the program stands for, one after the other.
        tokens, token_phase: how many tokens a run processes, and in which phase, as the program
            says.
        tokens_per_second, tokens_per_joule: for all the runs it stands for, whose seconds and
            joules are this run's, multiplied.
        time_to_first_token_seconds: for all these runs; only for a prefill.
        hbm: what the off-chip memory has counted; None if its model counts nothing. ``run --json``
            has it of those that do, with clients by their names.
        network: what went over the links between sites; None if the hardware has no ``[network]``.
            ``run --json`` has it of those that do.
        outputs: what the run stored, by name; empty if it did not complete.
        units, channels_counters: in node and edge order.
        comparison: what was known before the run, beside what the run measured.
        exact: whether floats were kept in float64.
        verification: the outputs beside what the program expects; None if it expects nothing.
        signal_to_noise_db: of a run that is exact, what the types that the program declares cost
            each output of floats: the sum of the squares of its numbers over that of the errors
            that these types make, in decibels. None where they make none.
        explained: why the run stood still; ``deadlock`` is the same as plain data.
        failure: what made the run fail; ``error`` is the same as plain data.
        warnings: sentences about a run that completed nevertheless.
        unwritten: sentences about the parts of its log and trace that could not be written.
        signal: the signal that interrupted the run, or the search for a deadlock's remedy; or None.
        traced_in: the folder that ``trace()`` opens; None if the run was not traced.
    """

    program: str
    parameters: JsonObject = field(default_factory=dict)
    hardware: JsonObject | None = None
    mode: str | None = None
    exact: bool = False
    status: Ending = "error"
    cycles: int | None = None
    off_chip_traffic_bytes: int | None = None
    on_chip_requirement_bytes: int | None = None
    off_chip_traffic_artifact_bytes: int | None = None
    on_chip_requirement_artifact_bytes: int | None = None
    on_chip_peak_bytes: int | None = None
    on_chip_peak_pages: int | None = None
    on_chip_map_bytes: int | None = None
    on_chip_peak_empty_bytes: int | None = None
    on_chip_wait_cycles: int | None = None
    spilled_bytes: int | None = None
    fetched_bytes: int | None = None
    hbm_bytes_moved: int | None = None
    flops: int | None = None
    allocated_flops_per_cycle: int | None = None
    compute_utilization: float | None = None
    off_chip_bandwidth_utilization: float | None = None
    operators: int | None = None
    channels: int | None = None
    channel_bytes: int | None = None
    elements: int | None = None
    seconds: float | None = None
    joules: float | None = None
    spent: tuple[Spending, ...] = ()
    area_mm2: float | None = None
    area_low_mm2: float | None = None
    area_high_mm2: float | None = None
    area: tuple[Area, ...] = ()
    stands_for_runs: int | None = None
    tokens: int | None = None
    token_phase: TokenPhase | None = None
    tokens_per_second: float | None = None
    tokens_per_joule: float | None = None
    time_to_first_token_seconds: float | None = None
    wall_seconds: float | None = None
    log_dir: str | None = None
    verified: bool | None = None
    verification: Verification | None = None
    signal_to_noise_db: dict[str, float | None] = field(default_factory=dict)
    explained: DeadlockReport | None = None
    failure: Failure | None = None
    extra: JsonObject = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    hbm: MemoryCounters | None = None
    network: NetworkUse | None = None
    name: str = ""
    units: tuple[UnitCounters, ...] = ()
    channels_counters: tuple[ChannelState, ...] = ()
    comparison: Comparison = Comparison()  # noqa: RUF009 - the same
    unwritten: tuple[str, ...] = ()
    signal: int | None = None
    outputs: Outputs = Outputs({})  # noqa: RUF009 - it cannot be changed
    traced_in: RunFolder | None = None

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Report):
            return NotImplemented
        return self._warned() == other._warned() and all(
            _same(getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
            if each.name not in _OF_THE_HOST
        )

    @override
    def __hash__(self) -> int:
        did = (self.status, self.cycles, self.elements, self.flops, self.hbm_bytes_moved)
        return hash((self.name, self.mode, *did, self.outputs))

    def _warned(self) -> list[str]:
        return [each for each in self.warnings if each not in self.unwritten]

    @property
    def deadlock(self) -> JsonObject | None:
        """Why it does not move, as ``run --json`` prints it; None where it does."""
        return None if self.explained is None else self.explained.as_json()

    @property
    def error(self) -> JsonObject | None:
        """What made it fail, as ``run --json`` prints it; None where nothing did."""
        return None if self.failure is None else asdict(self.failure)

    @property
    def joules_by_cause(self) -> dict[str, float | None] | None:
        """What each cause came to; None in all where nothing has a price."""
        return {each.cause: each.joules for each in self.spent} or None

    @property
    def area_by_cause(self) -> dict[str, list[float | None]] | None:
        """What each cause takes of a die, low and high; None in all where nothing has an area."""
        return {each.cause: [each.low_mm2, each.high_mm2] for each in self.area} or None

    @property
    def exit_status(self) -> int:
        """What the command line exits with."""
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
        """Open what was recorded of the run, which ``simulate(..., trace="events")`` does.

        Args:
            first: of a run that stopped and was run again with deeper channels, the one that
                stopped; else it is the second one, which this report is about.

        Raises:
            ConfigurationError: nothing was recorded, or it is not there any more.
        """
        expected = 'simulate(..., trace="events")'
        if self.traced_in is None:
            refuse(f"{self!r} has no trace: expected that of {expected}", ConfigurationError)
        path = self.traced_in.path
        if not path.is_dir():
            refuse(
                f"the trace of {self!r} is gone, with {path}: expected {expected} with log_dir, "
                "to keep it",
                ConfigurationError,
            )
        # Most runs are not traced.
        from fabric.analysis.trace.opened import open_trace

        return open_trace(path, first=first)

    def raise_for_status(self) -> None:
        """Raise what kept the program from completing with the right outputs, where something did.

        Raises:
            Deadlock: it stopped moving, or moves and gets nowhere.
            VerificationError: an output is not what the program expects.
            FabricError: it failed, or was interrupted.
        """
        if self.explained is not None:
            raise Deadlock(self.explained.summary, report=self.explained.as_json())
        if self.failure is not None:
            raise self.failure.error()
        if self.status == "interrupted":
            raise FabricError(f"program {self.name!r} was interrupted")
        if self.verified is False:
            found = self.verification or Verification()
            raise VerificationError(
                "\n".join((f"program {self.name!r}: the result is wrong", *found.lines())),
                verification=found.as_json(),
            )

    @override
    def __repr__(self) -> str:
        return in_short(self)

    @override
    def __str__(self) -> str:
        """Return the output of ``run``."""
        return shown(self, "text") or repr(self)

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield the fields for rich."""
        yield "name", self.name
        yield "status", self.status
        yield "cycles", self.cycles
        yield "verified", self.verified

    def _repr_html_(self) -> str | None:
        return shown(self)

    def as_json(self) -> JsonObject:
        """Return the object that ``run --json`` prints."""
        known = {
            name: getattr(self, name)
            for name in (_SPELLED.get(each.name, each.name) for each in fields(self))
            if name not in _BESIDE_THE_TABLE
        }
        if self.verification is not None:
            known["verification"] = self.verification.as_json()
        if self.hbm is not None:
            known["hbm"] = self._hbm(self.hbm)
        if self.network is not None:
            known["network"] = asdict(self.network)
        return known | {"warnings": list(self.warnings)}

    def _hbm(self, counters: MemoryCounters) -> JsonObject:
        from fabric.timing.state.resource_use import as_document

        document = as_document(counters)
        for client in document["clients"]:
            client["unit"] = self.units[client["unit"]].name
        return document


def _same(one: object, other: object) -> bool:
    """Whether two values are equal: arrays as a whole, whatever holds them, and NaN to itself."""
    if hasattr(one, "__array__") or hasattr(other, "__array__"):
        # A report of a program that could not be loaded is made without numpy.
        import numpy as np

        arrays = np.asarray(one), np.asarray(other)
        if arrays[0].shape != arrays[1].shape:
            return False
        numbers = not any(each.dtype.hasobject for each in arrays)
        if numbers and np.array_equal(*arrays):
            return True
        one, other = (each.tolist() for each in arrays)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if type(one) is not type(other) or len(one) != len(other):
            return False
        return all(_same(*each) for each in zip(one, other, strict=True))
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - a NaN


class RunFolder:
    """The folder of a run, with an absolute path."""

    def __init__(self, path: Path, *, passing: bool = False) -> None:
        """Hold ``path``; a ``passing`` folder is removed with this object, not in forks."""
        self.path: Final = path.absolute()
        if passing:
            weakref.finalize(self, _remove, self.path, os.getpid())

    def __reduce__(self) -> tuple[Callable[[Path], RunFolder], tuple[Path]]:
        """Pickle the path; other processes do not remove the folder."""
        return RunFolder, (self.path,)


def passing_folder() -> RunFolder:
    """Make a temporary folder."""
    try:
        return RunFolder(Path(tempfile.mkdtemp(prefix="step-fabric-")), passing=True)
    except OSError as error:
        raise ConfigurationError(
            f"simulate: the trace needs a folder: {error.strerror}: expected log_dir, or TMPDIR "
            "to name a folder that can be written"
        ) from None


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
