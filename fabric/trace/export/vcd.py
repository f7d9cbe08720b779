"""The trace as a value change dump (IEEE 1364): states of units, elements held by channels.

1 cycle is written as 1 ns. A unit's state is a number; a comment in the file says which.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.telling.whole_file import output_file
from fabric.trace.analysis.slices import STATES, occupancy, slices
from fabric.trace.analysis.timeline import timelines
from fabric.trace.reading.wording import Names

if TYPE_CHECKING:
    from fabric.trace.analysis.timeline import Timelines
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["write_vcd"]

_PRINTABLE: Final = [chr(code) for code in range(33, 127)]
_STATE_BITS: Final = 3
_LEVEL_BITS: Final = 32


def write_vcd(trace: RecordedRun, output: Path) -> int:
    """Write ``output`` for GTKWave and Surfer and return how many changes it has."""
    names, lines = Names(trace), timelines(trace)
    readers = [reader for (reader,) in trace.rows("SELECT reader FROM channels ORDER BY channel")]
    codes = _codes()
    units = [next(codes) for _ in names.units]
    channels = [next(codes) for _ in readers]
    changes = [
        (cycle, number, units[number], state)
        for number in range(len(units))
        for cycle, state in _states(lines, number)
    ]
    for channel, levels in occupancy(trace):
        number = len(units) + channel
        changes += [(level.cycle, number, channels[channel], level.value) for level in levels]
    changes.sort()
    with output_file(output, encoding="ascii", errors="replace") as file:
        # A word that begins with a dollar would end the comment.
        title = str(trace.meta.get("name")).replace("$", "_")
        file.write(f"$comment {title}: 1 ns is 1 cycle $end\n")
        states = ", ".join(f"{number} {state}" for number, state in enumerate(STATES))
        file.write(f"$comment state of a unit: {states} $end\n$timescale 1 ns $end\n")
        file.write("$scope module fabric $end\n")
        _scope(file.write, "units", _STATE_BITS, units, names.units)
        _scope(file.write, "held", _LEVEL_BITS, channels, readers)
        file.write("$upscope $end\n$enddefinitions $end\n")
        file.write(f"#{lines.first}\n$dumpvars\n")
        initial = {code: value for cycle, _, code, value in changes if cycle == lines.first}
        for code in (*units, *channels):
            file.write(f"b{initial.get(code, 0):b} {code}\n")
        file.write("$end\n")
        later = [change for change in changes if change[0] > lines.first]
        for cycle, group in itertools.groupby(later, key=lambda change: change[0]):
            file.write(f"#{cycle}\n")
            for _, _, code, value in group:
                file.write(f"b{value:b} {code}\n")
        if not changes or changes[-1][0] < lines.last:
            file.write(f"#{lines.last}\n")
    return len(changes)


def _states(lines: Timelines, unit: int) -> Iterator[tuple[int, int]]:
    """Yield the cycles in which the state changes, and to what; an open wait stays."""
    last, end, still = 0, lines.first, False
    for piece in slices(lines, unit):
        state, end, still = STATES.index(piece.state), piece.end, piece.open
        if state != last:
            yield piece.start, state
        last = state
    if last and not still:
        yield end, 0


def _scope(write: object, title: str, bits: int, codes: list[str], names: list[str]) -> None:
    assert callable(write)
    write(f"$scope module {title} $end\n")
    for code, name in zip(codes, _identifiers(names), strict=True):
        write(f"$var wire {bits} {code} {name} $end\n")
    write("$upscope $end\n")


def _identifiers(names: list[str]) -> Iterator[str]:
    """Yield ``names`` without what viewers read as the levels of a hierarchy, each another one."""
    taken = set(names)
    for name in names:
        known = plain = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
        for number in itertools.count(2):
            if known == name or known not in taken:
                break
            known = f"{plain}_{number}"
        taken.add(known)
        yield known


def _codes() -> Iterator[str]:
    """Yield the short codes signals have in the file."""
    for length in itertools.count(1):
        for letters in itertools.product(_PRINTABLE, repeat=length):
            yield "".join(letters)
