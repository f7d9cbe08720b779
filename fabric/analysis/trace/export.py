"""Exports of a trace: registered forms, tables, and a value change dump (IEEE 1364).

A dump has states of units and elements held by channels. 1 cycle is written as 1 ns. A unit's state
is a number, which a comment in the file explains.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from fabric.analysis.trace.analysis.timeline import STATES, Timelines, occupancy, slices, timelines
from fabric.analysis.trace.database import Connection, literal, plain, system_errors
from fabric.analysis.trace.opened import Trace, write_json_lines
from fabric.analysis.trace.reading.names import Names
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.graph.arguments.described import checked, refuse
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import output_file
from fabric.messages.text import one_of
from fabric.messages.users_code import users_code

Writer: TypeAlias = Callable[[Trace, Path], int]
"""Writes a trace into a file and returns the number of events."""

_PRINTABLE: Final = [chr(code) for code in range(33, 127)]

_STATE_BITS: Final = 3

_LEVEL_BITS: Final = 32


def _perfetto(trace: Trace, output: Path) -> int:
    from fabric.analysis.trace.perfetto import write_perfetto

    return write_perfetto(trace, output)


def _csv(trace: Trace, output: Path) -> int:
    transfers = trace.query(
        "SELECT c.name AS channel, t.* EXCLUDE (channel) FROM transfers t "
        "JOIN channels c USING (channel) ORDER BY taken_cycle NULLS LAST, t.channel, element"
    )
    # The trace's own database is read-only. One thread keeps the order of rows.
    database = Connection()
    database.execute("SET threads = 1")
    with output_file(output, "wb"), plain(output) as file, system_errors():
        copy = (
            f"COPY transfers TO {literal(file)} "
            "(FORMAT csv, HEADER, COMPRESSION none, USE_TMP_FILE false)"
        )
        database.call(lambda connection: connection.register("transfers", transfers).execute(copy))
    return len(transfers)


@checked
def export_form(form: str) -> Callable[[Writer], Writer]:
    """Return a decorator that registers a function as the writer of ``form``.

    Raises:
        ConfigurationError: there is such a form already.
    """
    if form in _FORMS:
        refuse(f"form {form!r}: there is one already: expected another name", ConfigurationError)

    def register(write: Writer) -> Writer:
        _FORMS[form] = write
        return write

    return register


@checked
def export_trace(trace: Trace, form: str, output: Path) -> int:
    """Write ``trace`` to ``output`` in ``form``, and return the number of events.

    Raises:
        ConfigurationError: the form is unknown.
        OSError: it cannot be written.
    """
    if form not in _FORMS:
        refuse(f"form {form!r}: expected {one_of(tuple(_FORMS), form)}", ConfigurationError)
    write = _FORMS[form]
    if form in _OWN_FORMS:
        return write(trace, output)
    with users_code(f"form {form!r}"):
        return write(trace, output)


def write_vcd(trace: RecordedRun, output: Path) -> int:
    """Write ``output`` for GTKWave and Surfer; return the number of changes of values."""
    names, lines = Names(trace), timelines(trace)
    readers = [reader for (reader,) in trace.rows("SELECT reader FROM channels ORDER BY channel")]
    lengths = itertools.count(1)
    codes = ("".join(code) for n in lengths for code in itertools.product(_PRINTABLE, repeat=n))
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
        # A word that begins with a dollar sign would end the comment.
        title = trace.head.name.replace("$", "_")
        file.write(f"$comment {title}: 1 ns is 1 cycle $end\n")
        states = ", ".join(f"{number} {state}" for number, state in enumerate(STATES))
        file.write(f"$comment state of a unit: {states} $end\n$timescale 1 ns $end\n")
        file.write("$scope module fabric $end\n")
        file.writelines(_scope("units", _STATE_BITS, units, names.units))
        file.writelines(_scope("held", _LEVEL_BITS, channels, readers))
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
    """Yield the cycles in which the state of ``unit`` changes, and the number of the new state."""
    last, end, is_open = 0, lines.first, False
    for piece in slices(lines, unit):
        state, end, is_open = STATES.index(piece.state), piece.end, piece.open
        if state != last:
            yield piece.start, state
        last = state
    if last and not is_open:
        yield end, 0


def _scope(title: str, bits: int, codes: list[str], names: list[str]) -> Iterator[str]:
    yield f"$scope module {title} $end\n"
    for code, name in zip(codes, _identifiers(names), strict=True):
        yield f"$var wire {bits} {code} {name} $end\n"
    yield "$upscope $end\n"


def _identifiers(names: list[str]) -> Iterator[str]:
    """Yield a different identifier for each name; names that are identifiers stay."""
    taken = set(names)
    for name in names:
        identifier = plain_name = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
        number = 1
        while identifier != name and identifier in taken:
            number += 1
            identifier = f"{plain_name}_{number}"
        taken.add(identifier)
        yield identifier


_FORMS: Final[dict[str, Writer]] = {
    "perfetto": _perfetto,
    "jsonl": write_json_lines,
    "vcd": write_vcd,
    "csv": _csv,
}

_OWN_FORMS: Final = frozenset(_FORMS)
