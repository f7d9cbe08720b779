"""``trace export``: the forms a trace can be written in; users add their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import duckdb

from fabric.arguments.described import checked, refuse
from fabric.telling.errors import ConfigurationError
from fabric.telling.users_code import users_code
from fabric.telling.whole_file import output_file
from fabric.telling.wording import one_of
from fabric.trace.opened import Trace
from fabric.trace.reading.paths import literal, plain, system_errors

__all__ = ["export_form", "export_trace"]

Writer: TypeAlias = Callable[[Trace, Path], int]
"""Writes a trace into a file and returns how many events that were."""


def _perfetto(trace: Trace, output: Path) -> int:
    from fabric.trace.export.perfetto import write_perfetto

    return write_perfetto(trace, output)


def _vcd(trace: Trace, output: Path) -> int:
    from fabric.trace.export.vcd import write_vcd

    return write_vcd(trace, output)


def _jsonl(trace: Trace, output: Path) -> int:
    from fabric.trace.export.json_lines import write_json_lines

    return write_json_lines(trace, output)


def _csv(trace: Trace, output: Path) -> int:
    transfers = trace.query(
        "SELECT c.name AS channel, t.* EXCLUDE (channel) FROM transfers t "
        "JOIN channels c USING (channel) ORDER BY taken_cycle NULLS LAST, t.channel, element"
    )
    # The trace's own database writes no files; in one thread, rows stay in their order.
    with (
        duckdb.connect(config={"threads": 1}) as database,
        output_file(output, "wb"),
        plain(output) as file,
        system_errors(),
    ):
        database.register("transfers", transfers)
        database.execute(
            f"COPY transfers TO {literal(file)} "
            "(FORMAT csv, HEADER, COMPRESSION none, USE_TMP_FILE false)"
        )
    return len(transfers)


_FORMS: Final[dict[str, Writer]] = {
    "perfetto": _perfetto,
    "jsonl": _jsonl,
    "vcd": _vcd,
    "csv": _csv,
}


@checked
def export_form(form: str) -> Callable[[Writer], Writer]:
    """Return a decorator that registers a function as the writer of ``form``.

    Raises:
        ConfigurationError: there is such a form already.
    """
    if form in _FORMS:
        refuse(f"form {form!r}: there is one already: expected another name", ConfigurationError)

    def known(write: Writer) -> Writer:
        _FORMS[form] = write
        return write

    return known


@checked
def export_trace(trace: Trace, form: str, output: Path) -> int:
    """Write ``trace`` to ``output`` in ``form``, and return the number of events.

    Raises:
        ConfigurationError: there is no such form.
        OSError: it cannot be written.
    """
    if form not in _FORMS:
        refuse(f"form {form!r}: expected {one_of(tuple(_FORMS), form)}", ConfigurationError)
    write = _FORMS[form]
    if write.__module__ == __name__:
        return write(trace, output)
    with users_code(f"form {form!r}"):
        return write(trace, output)
