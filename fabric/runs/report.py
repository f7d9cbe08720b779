"""The account of a run: totals, units, channels, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from signal import SIGINT
from typing import TYPE_CHECKING, Final

from fabric.machine.ending import Ending
from fabric.runs.verification import Verification
from fabric.telling.errors import Deadlock, FabricError, VerificationError
from fabric.telling.plain import JsonObject
from fabric.telling.shown import shown

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport

__all__ = [
    "ChannelCounters",
    "Compared",
    "Comparison",
    "ExitStatus",
    "Failure",
    "Report",
    "Totals",
    "UnitCounters",
]


class ExitStatus:
    """Exit statuses of ``python -m fabric``."""

    COMPLETED: Final = 0
    WRONG: Final = 1
    USAGE: Final = 2
    DEADLOCK: Final = 3
    UNWRITTEN: Final = 4

    @staticmethod
    def interrupted(number: int) -> int:
        """Return 128 and the signal's number: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + number


@dataclass(frozen=True)
class UnitCounters:
    """Where a unit's cycles went; the columns sum to the run's cycles.

    Attributes:
        name, operator, kind, file, line: which unit, and where it was wired.
        elements: values it dequeued.
        busy_cycles: charged for work.
        empty_cycles: waited for an element or the end of a stream.
        full_cycles: waited for a reader to take an element.
        credit_cycles: waited for a credit on its way back.
        hbm_cycles: waited for the HBM.
        capacity_cycles: waited for on-chip capacity.
        idle_cycles: between its end, or where the run was stopped under it, and the run's end; a
            wait that had not ended then counts as a wait to the last cycle.
        flops: floating-point operations done.
        flops_per_cycle: its compute bandwidth; 0 where it has no arithmetic.
    """

    name: str
    operator: str
    kind: str
    file: str
    line: int
    elements: int
    busy_cycles: int
    empty_cycles: int
    full_cycles: int
    credit_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    idle_cycles: int
    flops: int
    flops_per_cycle: int


@dataclass(frozen=True)
class ChannelCounters:
    """What went through a channel and who waited for it.

    Attributes:
        name: ``producer.output -> consumer.input``.
        depth: slots.
        elements: values dequeued.
        peak_occupancy: the most slots in use at once, credits on their way back included.
        empty_cycles: its consumer waited.
        full_cycles, credit_cycles: its producer waited.
        left_over: values nobody read.
    """

    name: str
    depth: int
    elements: int
    peak_occupancy: int
    empty_cycles: int
    full_cycles: int
    credit_cycles: int
    left_over: int


@dataclass(frozen=True)
class Totals:
    """The fields of ``run --json`` that are sums over the machine, under the same names."""

    cycles: int
    off_chip_traffic_bytes: int
    on_chip_requirement_bytes: int
    off_chip_traffic_artifact_bytes: int
    on_chip_requirement_artifact_bytes: int
    hbm_bytes_moved: int
    flops: int
    allocated_flops_per_cycle: int
    compute_utilization: float | None
    off_chip_bandwidth_utilization: float | None
    operators: int
    channels: int
    elements: int


@dataclass(frozen=True)
class Compared:
    """One quantity, as it was known before the run and as it came out.

    Attributes:
        what: in words.
        expected: the program's metric with the sizes of this run.
        measured: in the run.
        at_most: the measured one may be smaller.
    """

    what: str
    expected: int
    measured: int
    at_most: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the run was as expected."""
        return self.measured <= self.expected if self.at_most else self.measured == self.expected


@dataclass(frozen=True)
class Comparison:
    """What was known before a run beside what the run measured.

    Attributes:
        totals: of the program.
        channel_elements: expected per channel, in edge order.
        warnings: a sentence for every difference.
    """

    totals: tuple[Compared, ...] = ()
    channel_elements: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """What made a run fail.

    Attributes:
        message: the sentence, without the place.
        file, line: that it points at, where one is known.
    """

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
    {"name", "units", "channels_counters", "comparison", "unwritten", "signal"}
)


_SPELLED: Final = {"explained": "deadlock", "failure": "error"}
"""Fields that ``run --json`` has as plain data, and what it calls them."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run. The attributes without a comment are the fields of ``run --json``.

    Attributes:
        name: of the program.
        units, channels_counters: in node and edge order.
        comparison: what was known before the run beside what it measured.
        verification: the outputs beside what the program expects; None where it expects nothing.
        explained: why it does not move; ``deadlock`` is the same as plain data.
        failure: what made it fail; ``error`` is the same as plain data.
        warnings: sentences about a run that completed all the same.
        unwritten: sentences about what of its log and trace could not be written.
        signal: the one that interrupted it; None where none did.
    """

    program: str
    parameters: JsonObject = field(default_factory=dict)
    hardware: JsonObject | None = None
    mode: str | None = None
    status: Ending = "error"
    cycles: int | None = None
    off_chip_traffic_bytes: int | None = None
    on_chip_requirement_bytes: int | None = None
    off_chip_traffic_artifact_bytes: int | None = None
    on_chip_requirement_artifact_bytes: int | None = None
    hbm_bytes_moved: int | None = None
    flops: int | None = None
    allocated_flops_per_cycle: int | None = None
    compute_utilization: float | None = None
    off_chip_bandwidth_utilization: float | None = None
    operators: int | None = None
    channels: int | None = None
    elements: int | None = None
    wall_seconds: float | None = None
    log_dir: str | None = None
    verified: bool | None = None
    verification: Verification | None = None
    explained: DeadlockReport | None = None
    failure: Failure | None = None
    extra: JsonObject = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    name: str = ""
    units: tuple[UnitCounters, ...] = ()
    channels_counters: tuple[ChannelCounters, ...] = ()
    comparison: Comparison = Comparison()
    unwritten: tuple[str, ...] = ()
    signal: int | None = None

    @property
    def deadlock(self) -> JsonObject | None:
        """Why it does not move, as ``run --json`` prints it; None where it does."""
        return None if self.explained is None else self.explained.as_json()

    @property
    def error(self) -> JsonObject | None:
        """What made it fail, as ``run --json`` prints it; None where nothing did."""
        return None if self.failure is None else asdict(self.failure)

    @property
    def exit_status(self) -> int:
        """What the command line exits with."""
        match self.status:
            case "completed":
                if self.verified is False:
                    return ExitStatus.WRONG
                return ExitStatus.UNWRITTEN if self.unwritten else ExitStatus.COMPLETED
            case "deadlock" | "livelock":
                return ExitStatus.DEADLOCK
            case "interrupted":
                return ExitStatus.interrupted(self.signal or SIGINT)
            case "error":
                return ExitStatus.WRONG

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

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """What rich shows of it."""
        yield "name", self.name
        yield "status", self.status
        yield "cycles", self.cycles
        yield "verified", self.verified

    def _repr_html_(self) -> str | None:
        """What a notebook shows of it: what ``run`` prints, with all units and channels."""
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
        return known | {"warnings": list(self.warnings)}
