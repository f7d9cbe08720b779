from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fabric.graph.hardware.latency import Hop
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import Program
from fabric.messages.causes import Operation
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.engine.log import Keeper
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.record_making import Recording
from fabric.timing.retiming.retimer import Retimer

UNBOUNDED = 1 << 40


class Run(NamedTuple):
    cycles: int | None
    clocks: tuple[int, ...]
    blocked: tuple[tuple[int, frozenset[int], bool], ...] = ()

    def ends_as(self, other: Run) -> bool:
        """Return whether ``other`` ended in the same way; it may name fewer channels of a wait."""
        return self[:2] == other[:2] and all(
            (unit, full) == (same, is_full) and channels >= fewer
            for (unit, channels, full), (same, fewer, is_full) in zip(
                self.blocked, other.blocked, strict=True
            )
        )


def execute(
    program: Program,
    depths: Mapping[str, int],
    hops: Mapping[str, Hop],
    *keepers: Keeper,
    compiles: bool = False,
) -> tuple[Execution, str]:
    settings = Settings(
        mode="timing",
        depths=depths,
        hops=hops,
        engine="compiled" if compiles else "tasks",
        notify=lambda _: None,
    )
    execution = Execution(program, settings, keepers=keepers)
    return execution, execution.execute()


def recorded(
    program: Program, depths: Mapping[str, int], hops: Mapping[str, Hop] | None = None
) -> tuple[Record | None, Run]:
    recording = Recording(elaborate(program))
    execution, status = execute(program, depths, hops or {}, recording)
    record = recording.record(execution.machine) if status == "completed" else None
    return record, _ended(execution, status)


def run(
    program: Program,
    depths: Mapping[str, int],
    hops: Mapping[str, Hop] | None = None,
    *,
    compiles: bool = False,
) -> Run:
    return _ended(*execute(program, depths, hops or {}, compiles=compiles))


def _ended(execution: Execution, status: str) -> Run:
    state = execution.state
    if status == "completed":
        return Run(state.cycles, tuple(unit.cycle for unit in state.units))
    assert "deadlock" == status
    blocked = [
        (unit.number, frozenset(unit.wait.channels), unit.wait.operation is Operation.SEND)
        for unit in state.units
        if unit.wait is not None
    ]
    return Run(None, (), tuple(blocked))


def timed(retimer: Retimer, depths: Sequence[int]) -> Run:
    retimed = retimer.time(depths)
    if retimed.cycles is None:
        assert retimed.passed is None
        blocked = [(each.unit, frozenset({each.channel}), each.full) for each in retimed.blocked]
        return Run(None, (), tuple(blocked))
    # A unit has at least one event, its end.
    return Run(retimed.cycles, tuple(retimer.clocks[retimer.record.first[1:] - 1].tolist()))


def depths_of(record: Record, options: Mapping[str, int]) -> list[int]:
    return [options.get(channel.option, channel.depth) for channel in record.channels]
