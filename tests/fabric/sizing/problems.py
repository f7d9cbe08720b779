from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabric import Program
from fabric.analysis.depths.problem import Limit, Problem, Slot, Variable
from fabric.explore.sizing.running import unbounded
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT
from tests.fabric.retiming import real


def deep_record(program: Program) -> Record | None:
    record, _ = real.recorded(program, unbounded(program))
    return record


def cycles_of(program: Program, depths: Mapping[str, int], repeats: int = 1) -> int | None:
    settings = Settings(mode="timing", depths=depths, on_deadlock="describe")
    run = Execution(program, settings, elaborate(program), repeats)
    return run.state.cycles if run.execute() == "completed" else None


def problem_of(*records: Record, together: Sequence[Sequence[int]] = ()) -> Problem:
    channels = records[0].channels
    sharing = {number for numbers in together for number in numbers}
    groups = [*together, *((each,) for each in range(len(channels)) if each not in sharing)]
    variables = tuple(
        Variable(
            channels[numbers[0]].option,
            tuple(Slot(channels[each].option, channels[each].element_bytes) for each in numbers),
            1,
            max(1, *(record.channels[each].elements for record in records for each in numbers)),
        )
        for numbers in groups
    )
    limits = tuple(Limit(record, NO_LIMIT) for record in records)
    return Problem(variables, limits, lambda slots, element_bytes: slots * element_bytes)
