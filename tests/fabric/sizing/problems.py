"""Problems made of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabric import Program
from fabric.retiming.record import Record
from fabric.retiming.recording import Recording
from fabric.retiming.retimer import NO_LIMIT
from fabric.runs.execution import Execution, Settings
from fabric.sizing.problem import Limit, Problem, Slot, Variable
from fabric.wiring.elaborate import elaborate

DEEP = 10_000
"""Deeper than any channel of these tests can use."""


def record_of_run(program: Program, depths: Mapping[str, int]) -> Record | None:
    """Return the record of one run; None where it does not complete."""
    recording = Recording(elaborate(program))
    settings = Settings(False, dict(depths), {}, None, 10_000_000, None, (recording,), False)
    execution = Execution(program, settings, lambda _: None)
    if execution.execute() != "completed":
        return None
    return recording.record(execution.machine)


def deep_record(program: Program) -> Record | None:
    """Return the record of a run whose channels are never full; None where it gets stuck."""
    return record_of_run(program, {edge.key: DEEP for edge in elaborate(program).edges})


def problem_of(*records: Record, together: Sequence[Sequence[int]] = ()) -> Problem:
    """Return the problem of all depths from 1 to the elements there are.

    Args:
        records: of one program.
        together: numbers of channels that share a variable; the others have one each.
    """
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
