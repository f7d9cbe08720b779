"""Reads a recorded trace into an in-memory DuckDB database."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

# Any: rows of the database, and JSON files of the trace.
from typing import Any, Final

import duckdb
import numpy as np

from fabric.analysis.trace.database import SUFFIX, Connection, literal, read_table
from fabric.analysis.trace.reading import query_tables
from fabric.analysis.trace.reading.integrity import (
    FORMS,
    End,
    Head,
    end_in,
    head_in,
    selected,
)
from fabric.analysis.trace.reading.query_tables import add_families
from fabric.messages.errors import ConfigurationError, Refusal
from fabric.messages.files import read_json, read_limited
from fabric.messages.place import calling_place, is_installed
from fabric.messages.text import JsonObject, outcome
from fabric.messages.vocabulary import SCHEMA_VERSION
from fabric.timing.engine.log import ENTRY, Entries
from fabric.timing.engine.off_chip import MemoryCounters
from fabric.timing.state.resource_use import counters_in

_NUMBERED: Final = re.compile("[0-9]{6,18}")

_DAMAGES: Final = (duckdb.Error, OSError, ValueError)


def refused(message: str) -> ConfigurationError:
    """Return an error at the user's calling line; the command line has none."""
    file, line = calling_place()
    if is_installed(file):
        return ConfigurationError(message)
    return ConfigurationError(message, file=file, line=line)


class RecordedRun:
    """A recorded run in an in-memory database, independent of its folder.

    Several runs may be open together, and several threads may query one. Queries are read-only.
    ``Trace`` describes the attributes that both classes have.

    Attributes:
        head: the fields of ``meta`` used in computations.
        shared_channels: numbers of the channels that share limited links of a network.
        damaged: rows, files or the end of the run are missing.
        end: the end of the run; ``killed`` if it was not recorded.
        explained: the run's own ``deadlock.json``; None without one.
    """

    def __init__(self, run: Path, *, first: bool = False) -> None:
        """Read the trace of the run folder ``run``, or the trace folder itself.

        ``first``: read the stopped run, if it was repeated with deeper channels.
        """
        folders = [run / name for name in ("trace-grown", "trace") if (run / name).is_dir()]
        self.folder: Final = folders[-1 if first else 0] if folders else run
        self.problems: list[str] = []
        if len(folders) > 1 and not first:
            self.problems.append(
                f"this is the run repeated with deeper channels; {folders[1]} has the run that "
                "stopped"
            )
        notes = len(self.problems)
        self.has_state = True
        self.meta: Final = self._meta(run)
        head = head_in(self.meta)
        if head is None:
            raise self._damaged()
        self.head: Final[Head] = head
        self.shared_channels: Final = head.shared_links.channels
        self.explained: bytes | None = None
        with contextlib.suppress(OSError, ValueError):
            self.explained = read_limited(self.folder.parent / "deadlock.json")
        self._database, self._files = Connection(), Connection()
        for name in ("units", "channels", "columns"):
            self._static(name)
        ((units, channels),) = self._database.rows(
            "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM channels)"
        )
        if not head.fits(units, channels):
            raise self._damaged()
        add_families(self._database)
        end = end_in(self._json("end.json"), units)
        self._segments(end)
        # From here on the database is read-only and opens no files.
        self._database.execute("SET enable_external_access = false")
        self._open: Final = [self._database]
        del self._database, self._files
        ((status, cycles),) = self.rows("SELECT status, cycles FROM run")
        self.status: Final[str] = status
        self.cycles: Final[int] = cycles
        self.is_partial: Final = head.window is not None or head.nodes is not None
        self.end: Final = end or End("killed", 0)
        self.outcome: Final = outcome(self.status, self.end.verified)
        self.failed: Final = self.status != "completed" or self.end.verified is False
        if end is None:
            self.problems.append(
                "the run did not record its end: this is the trace up to its last write"
            )
        self.hbm: Final = self._counters(units)
        self.damaged: Final = len(self.problems) > notes
        start, last = head.window or (0, self.cycles)
        self.window: Final[tuple[int, int]] = (min(start, self.cycles), min(last + 1, self.cycles))

    def cursor(self) -> Connection:
        """Return a read-only connection, which can be used in parallel with others."""
        database = next(iter(self._open), None)
        if database is None:
            raise refused(
                f"trace {self.folder}: it is closed: expected a query before close(), or "
                "inside of `with open_trace(...) as trace:`"
            )
        cursor = database.cursor()
        # A SELECT may contain an INSERT, and EXPLAIN ANALYZE executes its statement.
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        return cursor

    def rows(self, query: str, **parameters: int | list[int]) -> list[tuple[Any, ...]]:
        """Return the rows of a query; ``$name`` in it is a parameter."""
        return self.cursor().rows(query, parameters or None)

    def numpy(self, query: str, **parameters: int) -> dict[str, np.ndarray]:
        """Return the columns of a query as numpy arrays; ``$name`` in it is a parameter."""
        return self.cursor().numpy(query, parameters or None)

    def entries(self) -> Entries:
        columns = self.numpy("SELECT * EXCLUDE (place) FROM entries ORDER BY place")
        rows = np.empty(len(columns["unit"]), ENTRY)
        for name, column in columns.items():
            rows[name] = column
        return rows

    def close(self) -> None:
        """Free the memory. Later queries are refused; running ones end."""
        self._open.clear()

    def unit_names(self) -> list[str]:
        return [name for (name,) in self.rows("SELECT name FROM units ORDER BY unit")]

    def _counters(self, units: int) -> MemoryCounters | None:
        if self.end.hbm is None:
            return None
        try:
            return counters_in(self.end.hbm, units)
        except Refusal as error:
            self.problems.append(
                f"end.json is damaged, the counters of the HBM are left out: {error}"
            )
            return None

    def _meta(self, run: Path) -> JsonObject:
        meta = self._json("meta.json")
        if meta is None and os.path.lexists(self.folder / "meta.json"):
            raise self._damaged()
        if meta is None and self.folder != run:
            raise refused(
                f"{run}: the trace has no meta.json: the run was killed before it began to write, "
                "there is nothing to show"
            )
        if meta is None:
            raise refused(
                f"{run}: there is no trace here: expected the folder of a run with --trace events"
            )
        version = meta.get("schema_version")
        if not isinstance(version, int):
            raise self._damaged()
        if version != SCHEMA_VERSION:
            most, age = ("at most ", "a newer") if version > SCHEMA_VERSION else ("", "an older")
            raise refused(
                f"{run}: the trace has schema version {version}: expected {most}{SCHEMA_VERSION}; "
                f"{age} step-fabric wrote it"
            )
        return meta

    def _damaged(self) -> ConfigurationError:
        file = self.folder / "meta.json"
        return refused(f"{file} is damaged: expected the file as the run wrote it")

    def _json(self, name: str) -> JsonObject | None:
        with contextlib.suppress(OSError, ValueError):
            return read_json(self.folder / name)
        return None

    def _static(self, name: str) -> None:
        file = self.folder / f"{name}{SUFFIX}"
        if not os.path.lexists(file):
            raise refused(
                f"{self.folder}: {file.name} is missing: the run was killed while it wrote its "
                "first tables, there is nothing to show"
            )
        try:
            self._database.execute(f"CREATE TABLE {name} AS FROM {self._file(name, file)}")
        except _DAMAGES as error:
            raise refused(
                f"{file}: {_reason(error)}: expected the table as the run wrote it"
            ) from None

    def _file(self, form: str, file: Path) -> str:
        types = {name: column.type for name, column in FORMS[form].items()}
        try:
            columns = read_table(self._files, file, types)
        except duckdb.Error:
            self._files = Connection()
            raise
        rows = np.arange(len(next(iter(columns.values()))))
        self._database.register("read", {**columns, "row": rows})
        return selected(form, "read")

    def _numbered(self, name: str) -> list[Path]:
        files = self.folder.glob(f"{name}-*{SUFFIX}")
        return sorted(file for file in files if _NUMBERED.fullmatch(file.stem.partition("-")[2]))

    def _segments(self, end: End | None) -> None:
        database = self._database
        window, memory = self.head.window, self.head.off_chip
        for name, value in (
            ("status", literal("killed" if end is None else end.status)),
            ("cycles", "NULL" if end is None else end.cycles),
            ("window_first", "NULL" if window is None else window[0]),
            ("window_last", "NULL" if window is None else window[1]),
            ("shared_channels", f"{self.shared_channels}::BIGINT[]"),
            ("request_bytes", memory.request_bytes),
            ("peak_bytes_per_cycle", f"{memory.peak_bytes_per_cycle}::DOUBLE"),
        ):
            database.execute(f"SET VARIABLE {name} = {value}")
        database.execute(query_tables.ENTRIES)
        self._load()
        self._last("states", "recorded_states")
        self._last("waiting", "waiting")
        self._drop_misfits()
        if window is not None:
            self._omit()
        self._drop_unsent()
        database.execute(query_tables.VIEWS)

    def _load(self) -> None:
        files = self._numbered("operations")
        for number, file in enumerate(files, 1):
            try:
                if file.stem != f"operations-{number:06}":
                    raise ValueError(f"operations-{number:06}{SUFFIX} is missing")
                self._insert_all(query_tables.APPEND.format(file=self._file("operations", file)))
            except _DAMAGES as error:
                self.problems.append(
                    f"{file.name} is damaged, its rows and later ones are left out: "
                    f"{_reason(error)}"
                )
                return

    def _omit(self) -> None:
        file = self.folder / f"window{SUFFIX}"
        if os.path.lexists(file):
            try:
                rows = self._file("window", file)
                self._insert_all(f"INSERT INTO omissions FROM {rows}")
            except _DAMAGES as error:
                self.problems.append(
                    f"{file.name} is damaged, elements are left out: {_reason(error)}"
                )
        self._database.execute(query_tables.WINDOW)

    def _drop_unsent(self) -> None:
        """Drop all rows if a channel has more dequeued than sent elements: rows are missing."""
        if self._database.rows(query_tables.UNSENT):
            self.problems.append(
                "more elements were dequeued than sent: rows are missing, all are left out"
            )
            self.has_state = False
            self._database.execute(
                "DELETE FROM entries; DELETE FROM recorded_states; DELETE FROM waiting"
            )

    def _drop_misfits(self) -> None:
        """Drop the last states if ``waiting`` does not fit them, as ``UNFIT`` explains."""
        if not self.has_state or not self._database.rows(query_tables.UNFIT):
            return
        self.problems.append("states and waiting do not fit together, they are left out")
        self.has_state = False
        self._database.execute("DELETE FROM recorded_states; DELETE FROM waiting")

    def _insert_all(self, insert: str) -> None:
        self._database.execute("BEGIN TRANSACTION")
        try:
            self._database.execute(insert)
        except duckdb.Error:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _last(self, name: str, table: str) -> None:
        """Make ``table`` from the last file ``name``; an empty table without a file."""
        states = self._numbered("states")
        file = self.folder / (states[-1].name if states else "").replace("states", name)
        if states and os.path.lexists(file):
            try:
                self._database.execute(f"CREATE TABLE {table} AS FROM {self._file(name, file)}")
            except _DAMAGES as error:
                self.problems.append(f"{file.name} is damaged, it is left out: {_reason(error)}")
                self.has_state = False
            else:
                return
        elif name == "states":
            self.has_state = False
        columns = ", ".join(f'"{column}" {form.type}' for column, form in FORMS[name].items())
        self._database.execute(f"CREATE TABLE {table} ({columns})")


def _reason(error: Exception) -> str:
    text = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return text.splitlines()[0]
