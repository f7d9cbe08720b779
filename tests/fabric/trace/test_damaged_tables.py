"""Tables of a run's folder that somebody has damaged: every command answers, or says which file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.reading import reader
from fabric.analysis.trace.reading.integrity import FORMS
from fabric.analysis.trace.table_file import read_table, write_table
from fabric.shell.cli import main
from fabric.timing.retiming.deriving import logged
from tests.fabric.trace.recording import program, record
from tests.profiles import examples, of_profile, spread

_COMMANDS: Final = (
    ("summary",),
    ("stalls",),
    ("deadlock",),
    ("what-if",),
    ("show", "--at", "2"),
    ("query", "utilisation"),
    ("query", "bandwidth"),
    ("diff",),
    ("report", "-o", "page.html"),
    *(("export", f"--{form}", "-o", f"run.{form}") for form in ("perfetto", "jsonl", "vcd", "csv")),
)

_NUMBERS: Final = (-(1 << 63), -2, -1, 0, 1, 7, 40, 1 << 20, 1 << 53, (1 << 63) - 1)
_TEXTS: Final = ("", "x", "\x1b[31m", "9" * 50, "send", "hbm", "x:y", "*")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of a run that completes, one that is stuck, and two in the loop."""
    folder = tmp_path_factory.mktemp("runs")
    found: dict[str, Path] = {}
    given_: tuple[tuple[str, str | None, dict[str, int]], ...] = (
        ("simplified_moe", None, {}),
        ("pack_rows", None, {}),
        ("simplified_moe", "timing", {}),
        ("simplified_moe", "timing", {"reassemble_1.2": 2}),
    )
    for name, mode, depths in given_:
        number = str(len(found))
        wired = program(name)
        report, trace = record(wired, folder / number, mode=mode, depths=depths)
        assert (trace.logged is None) == (mode is None)
        assert report.log_dir is not None
        found[f"{name}{number if depths or mode else ''}"] = Path(report.log_dir)
    return found


@contextlib.contextmanager
def _not_for_ever() -> Iterator[None]:
    """Fail where a file is waited for that nobody writes."""

    def late(*_: object) -> None:
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _asked(
    command: tuple[str, ...], run: Path, other: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Run a command on a damaged run; return its status and what it says on standard error."""
    arguments = [*command[1:], str(other)] if command[0] == "diff" else list(command[1:])
    with contextlib.chdir(run):
        status = main(["trace", command[0], str(run), *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err, err
    assert "\x1b" not in out + err
    assert status in (0, 2, 3), err
    sentences = [each for each in err.splitlines() if each.startswith("fabric: ")]
    refusals = [each for each in sentences if not each.startswith("fabric: warning: ")]
    assert len(refusals) == (status == 2), err
    return status, err


def _bytes_damaged(data: st.DataObject, file: Path) -> None:
    content = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=20)):
            content[at] = data.draw(st.integers(0, 255))
    file.write_bytes(content)


def _cells(data: st.DataObject, column: np.ndarray) -> np.ndarray:
    """Return a column one of whose values, or all, are others that fit its type."""
    values: Any = _NUMBERS if column.dtype.kind == "i" else _TEXTS
    values = (True, False) if column.dtype.kind == "b" else values
    given_, cells = data.draw(st.sampled_from(values)), column.tolist()
    if cells and data.draw(st.integers(0, 3)):
        cells[data.draw(st.integers(0, len(cells) - 1))] = given_
    else:
        cells = [given_] * len(cells)
    return np.array(cells, column.dtype)


def _table_damaged(data: st.DataObject, file: Path) -> None:
    table = read_table(file)
    name = data.draw(st.sampled_from(sorted(table)))
    how = data.draw(st.sampled_from(["cells"] * 3 + ["type", "drop", "rename", "rows", "twice"]))
    if how == "cells":
        table[name] = _cells(data, table[name])
    elif how == "type":
        kind = data.draw(st.sampled_from((np.object_, np.bool_, np.int64)))
        value = {np.object_: "x", np.bool_: True, np.int64: 1}[kind]
        table[name] = np.array([value] * len(table[name]), kind)
    elif how == "drop":
        del table[name]
    elif how == "rename":
        table = {"x" if each == name else each: its for each, its in table.items()}
    elif how == "rows":
        count = data.draw(st.integers(0, len(table[name])))
        table = {each: its[:count] for each, its in table.items()}
    else:
        table = {each: np.concatenate([its, its]) for each, its in table.items()}
    write_table(file, table)


_HEADS: Final[tuple[dict[str, Any], ...]] = (
    {"rows": 1 << 40}, {"rows": -1}, {"rows": 1.5}, {"checksum": 7}, {"columns": []},
    {"columns": [["unit", "i8", 1 << 61]]}, {"columns": [["unit", "O", 8]]}, {"more": 1},
    {"columns": [["unit", "i8", 8], ["unit", "i8", 8]]}, {"columns": "x"},
)  # fmt: skip


def _head_damaged(data: st.DataObject, file: Path) -> None:
    """Let the first line say something else; the rest stays."""
    line, _, content = file.read_bytes().partition(b"\n")
    head = json.loads(line) | data.draw(st.sampled_from(_HEADS))
    file.write_bytes(json.dumps(head).encode() + b"\n" + content)


@examples(quick=12)
@given(st.data())
def test_damaged(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    """Cut off, overwritten, of another table, with other columns, types or values."""
    name = data.draw(st.sampled_from(sorted(runs)))
    run = runs[name].parent.with_name("damaged")
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(runs[name], run)
    files = sorted((run / "trace").glob("*.table"))
    file = data.draw(st.sampled_from(files))
    how = data.draw(st.sampled_from(["bytes", "head", *["table"] * 4, "other"]))
    if how == "bytes":
        _bytes_damaged(data, file)
    elif how == "head":
        _head_damaged(data, file)
    elif how == "table":
        _table_damaged(data, file)
    else:
        file.write_bytes(data.draw(st.sampled_from(files)).read_bytes())
    command = data.draw(st.sampled_from(_COMMANDS))
    status, told = _asked(command, run, runs[name], capsys)
    if status == 2 and command[0] != "what-if":
        assert file.name in told


_KINDS: Final = ("pipe", "folder", "itself", "zeros", "empty")


def _become(file: Path, kind: str) -> None:
    """Let ``file`` be something else."""
    file.unlink()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "itself":
            file.symlink_to(file)
        case "zeros":
            file.symlink_to("/dev/zero")
        case _:
            file.touch()


@pytest.mark.parametrize("name", spread(["pack_rows", "simplified_moe3"], 1))
@pytest.mark.parametrize("kind", _KINDS)
def test_no_files(
    kind: str, name: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pipes to which nobody writes, devices without end, folders, links to themselves."""
    source = runs[name]
    files = sorted(each.relative_to(source) for each in (source / "trace").iterdir())
    # Every kind in the place of some files, and every file: of another kind than its neighbours.
    step = of_profile(quick=len(_KINDS), deep=1)
    for number, file in enumerate(files[list(_KINDS).index(kind) % step :: step]):
        run = tmp_path / str(number)
        shutil.copytree(source, run)
        _become(run / file, kind)
        with _not_for_ever():
            status, told = _asked(("summary",), run, source, capsys)
        assert file.name in told or "did not say how it ended" in told
        static = file.stem in ("units", "channels", "columns", "meta")
        assert status == (2 if static else 0), (file, told)


def test_strange_names(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Files beside those that a run writes are nobody's."""
    run = runs["pack_rows"].with_name("strange")
    shutil.copytree(runs["pack_rows"], run)
    for name in ("states-x", "short-zzz", "long-", "operations--1", "short-\u0664"):
        (run / "trace" / f"{name}.table").write_bytes(b"x")
    assert (0, "") == _asked(("summary",), run, run, capsys)


def test_forms(runs: dict[str, Path]) -> None:
    """Every table that a run writes has a form, with all its columns."""
    written: dict[str, set[str]] = {}
    for run in runs.values():
        for file in (run / "trace").glob("*.table"):
            table = written.setdefault(file.stem.partition("-")[0], set())
            table.update(read_table(file))
    assert written == {name: set(columns) for name, columns in FORMS.items()}


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ((), "i1"), ((127, -128), "i1"), ((128,), "i2"), ((-129,), "i2"), ((32_767, -32_768), "i2"),
        ((32_768,), "i4"), ((1, -32_769), "i4"), ((2**31 - 1, -(2**31)), "i4"), ((2**31,), "i8"),
        ((-1, -(2**31) - 1), "i8"),
    ],
)  # fmt: skip
def test_narrow(steps: tuple[int, ...], kind: str, tmp_path: Path) -> None:
    """Steps from number to number are kept in the fewest bytes that have all of them."""
    numbers = np.cumsum(np.array(steps, np.int64))
    file = tmp_path / "a.table"
    write_table(file, {"a": numbers, "b": numbers > 0})
    head = json.loads(file.read_bytes().partition(b"\n")[0])
    assert [["a", kind], ["b", "b1"]] == [each[:2] for each in head["columns"]]
    found = read_table(file)
    assert (numbers.tolist(), (numbers > 0).tolist()) == (found["a"].tolist(), found["b"].tolist())
    assert np.int64 == found["a"].dtype


_IS_TOO_LONG: Final = "a is of another length"


@pytest.mark.parametrize(
    ("rows", "kind", "plain", "refusal"),
    [
        (2, "i1", b"\x01\xff", ""), (2, "i1", b"\x01", _IS_TOO_LONG), (0, "i1", b"", ""),
        (2, "i1", b"\x01\x01\x01", _IS_TOO_LONG), (1, "i2", b"\x00\x01", ""),
        (2, "b1", b"\x00\x01", ""), (2, "b1", b"\x00\x02", "a is neither true nor false"),
        (0, "b1", b"", ""), (1, "text", b'["x"]', ""), (2, "text", b'["x"]', _IS_TOO_LONG),
        (0, "text", b"[]", ""), (0, "text", b"[1]", "a is no list of texts"),
        (1, "text", b'["x"', "a is no list of texts"),
        (1, "text", b"\xff", "a is no list of texts"),
        (1, "f8", bytes(8), "a is of no kind that a table has"), (1, "i1", b"\x01 more", "a is"),
    ],
)  # fmt: skip
def test_columns(rows: int, kind: str, plain: bytes, refusal: str, tmp_path: Path) -> None:
    """A column has as many values as the first line says, all of its kind."""
    file, content = tmp_path / "a.table", zlib.compress(plain)

    def write(content: bytes, times: int = 1, more: int = 0) -> None:
        checksum = zlib.crc32(content * times) + more
        columns = [["a", kind, len(content)]] * times
        head = {"rows": rows, "columns": columns, "checksum": checksum}
        file.write_bytes(json.dumps(head).encode() + b"\n" + content * times)

    write(content)
    if not refusal:
        values: dict[str, list[Any]] = {
            "i1": [1, 0], "i2": [256], "b1": [False, True], "text": ["x"],
        }  # fmt: skip
        expected = values[kind][:rows]
        assert {"a": expected} == {name: its.tolist() for name, its in read_table(file).items()}
        whole = file.read_bytes()
        file.write_bytes(whole + b"x")
        with pytest.raises(
            ValueError, match=f"^it has {len(whole) + 1} bytes: expected {len(whole)}$"
        ):
            read_table(file)
        for told, its, *how in (
            ("a is of another length", content + b"x"), ("a is of another length", content[:-1]),
            ("a cannot be inflated", b"x" + content), ("it has a column twice", content, 2),
            ("its content is not what was written", content, 1, 1),
        ):  # fmt: skip
            write(its, *how)
            with pytest.raises(ValueError, match=f"^{told}$"):
                read_table(file)
    else:
        with pytest.raises(ValueError, match=f"^{refusal}"):
            read_table(file)


Given = tuple[dict[str, dict[str, np.ndarray]], np.ndarray, np.ndarray, Any, Any]


@pytest.fixture(scope="module")
def given_log(runs: dict[str, Path]) -> Given:
    """Return what the rows of a run that got stuck in the compiled loop are derived from."""
    found: list[Any] = []

    def told(*given: Any) -> Any:
        found.append(given)
        return logged(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "logged", told)
        assert Trace(runs["simplified_moe3"]).problems == []
    (given,) = found
    tables, transfers, operations, about, moment = given
    assert (28, 31) == (len(about.units), len(about.channels))
    assert (26, 70) == (len(tables["stages"]["taken"]), len(tables["templates"]["kind"]))
    assert 2 == tables["stages"]["done"][23]
    return tables, transfers, operations, about, moment


_NONE: Final = "a number in it is none of a run"
_PORTS: Final = "its ports are none of a run"
_TEMPLATES: Final = "its templates are none of a run"
_ABSENT: Final = "its templates are about ports that are not there"
_STAGES: Final = "its stages are none of a run"
_ROWS: Final = "rows of it are missing"
_STUCK: Final = "what it says does not go on"
_SAYS: Final = "what it says is none of a run"
_BURSTS: Final = "bursts of it are missing"


@pytest.mark.parametrize(
    ("column", "row", "number", "refusal"),
    [
        ("ports.unit", -1, 28, _NONE), ("ports.unit", 0, -1, _NONE), ("ports.unit", 0, 2, _PORTS),
        ("ports.output", 0, 2, _NONE), ("ports.output", 0, -1, _NONE),
        ("ports.output", 0, 0, _ABSENT), ("ports.channel", 0, 31, _NONE),
        ("ports.channel", 0, 30, _STUCK), ("ports.channel", 0, -2, _NONE),
        ("ports.channel", 1, -1, _PORTS), ("ports.port", 0, 1, _PORTS),
        ("ports.channel", 0, -1, _ABSENT), ("ports.channel", 61, -1, ""),
        ("templates.kind", 22, 12, _SAYS), ("templates.kind", 36, 4, _SAYS),
        ("ports.port", 6, 0, _PORTS),
        ("templates.template", 0, -1, _NONE), ("templates.template", 0, 1, _TEMPLATES),
        ("templates.template", -1, 99, ""), ("templates.template", -1, 100, _TEMPLATES),
        ("templates.template", -1, 1 << 53, _NONE),
        ("templates.kind", 0, -2, _NONE), ("templates.kind", 0, -1, _BURSTS),
        ("templates.kind", 0, 13, _BURSTS), ("templates.kind", 0, 14, _NONE),
        ("templates.kind", 0, 11, _TEMPLATES), ("templates.port", 0, -1, ""),
        ("templates.port", 1, -1, _NONE), ("templates.port", 1, 1, _ABSENT),
        ("templates.port", 1, 1 << 53, _NONE), ("templates.work", 0, -1, _NONE),
        ("templates.work", 0, 1 << 53, _NONE), ("templates.amount", 0, 1 << 53, _NONE),
        ("templates.amount", 0, -(1 << 53), _NONE), ("templates.code", 0, -1, ""),
        ("templates.code", 0, -2, _NONE), ("templates.code", 0, (1 << 62) - 1, ""),
        ("templates.code", 0, 1 << 62, _NONE), ("templates.stamp", 0, -2, _NONE),
        ("templates.stamp", 0, 4, ""), ("templates.stamp", 0, 5, _NONE),
        ("taken.stage", 0, -1, _NONE), ("taken.stage", 0, 26, _NONE),
        ("taken.stage", 0, 25, _ROWS), ("taken.template", 0, 29, _NONE),
        ("taken.template", 0, 50, _NONE), ("stages.taken", 1, 12, _ROWS),
        ("stages.taken", 0, 1, _ROWS), ("stages.status", 0, -1, _NONE),
        ("stages.status", 0, 3, _NONE), ("stages.status", 3, 2, _STUCK),
        ("stages.done", 23, 99, _STAGES), ("stages.done", 23, -2, _STAGES),
        ("stages.done", 23, 3, _STUCK), ("stages.done", 23, 1, ""),
        ("stages.done", 23, 0, "its units are not where the run's were"),
    ],
)  # fmt: skip
def test_log(column: str, row: int, number: int, refusal: str, given_log: Given) -> None:
    """The log of the compiled loop is refused for a number that no run would have written."""
    tables, transfers, operations, about, moment = given_log
    table, _, name = column.partition(".")
    assert number != tables[table][name][row]
    damaged = {each: {key: its.copy() for key, its in of.items()} for each, of in tables.items()}
    damaged[table][name][row] = number
    if refusal:
        with pytest.raises(ValueError, match=f"^{refusal}$"):
            logged(damaged, transfers.copy(), operations.copy(), about, moment)
    else:
        logged(damaged, transfers.copy(), operations.copy(), about, moment)


def test_rows_of_tasks(given_log: Given) -> None:
    """Rows that tasks wrote fit those of the log: its units, its bursts and how far it was."""
    tables, transfers, operations, about, moment = given_log
    whole = logged(tables, transfers.copy(), operations.copy(), about, moment)

    def refused(refusal: str, **other: Any) -> None:
        its = {"transfers": transfers, "operations": operations, "moment": moment} | other
        with pytest.raises(ValueError, match=f"^{refusal}$"):
            logged(tables, its["transfers"].copy(), its["operations"].copy(), about, its["moment"])

    assert {0, 8} == {*operations[:, 0].tolist()}
    refused("there are other units", moment=moment._replace(cycles=moment.cycles[:-1]))
    later = moment.cycles.copy()
    later[1] += 1
    refused("its units are not where the run's were", moment=moment._replace(cycles=later))
    refused(_BURSTS, operations=operations[1:])
    refused(_BURSTS, operations=np.concatenate([operations[:1], operations]))
    # The last unit, which did nothing yet, may have no outputs.
    fewer = {**tables, "ports": {name: its[:-2] for name, its in tables["ports"].items()}}
    again = logged(fewer, transfers.copy(), operations.copy(), about, moment)
    assert whole.operations.tolist() == again.operations.tolist()
    # What task 2 stands at is its own to say.
    later = moment.cycles.copy()
    later[2] += 1
    again = logged(
        tables, transfers.copy(), operations.copy(), about, moment._replace(cycles=later)
    )
    assert whole.transfers.tolist() == again.transfers.tolist()
    assert whole.operations.tolist() == again.operations.tolist()


def test_held(runs: dict[str, Path]) -> None:
    """Of an element that is held, and perhaps looked at, what has not happened is -1."""
    (file,) = sorted((runs["pack_rows"] / "trace").glob("pending-*"))[-1:]
    held = {name: its.tolist() for name, its in read_table(file).items()}
    assert held["channel"]
    assert {-1} == {*held["taken_order"], *held["taken_cycle"]}
    seen = {*zip(held["seen_order"], held["seen_cycle"], held["receive_wait_cycles"], strict=True)}
    assert (-1, -1, 0) in seen
    assert all(min(each) >= 0 for each in seen - {(-1, -1, 0)})
    assert min(held["sent_order"]) >= 0


@pytest.mark.parametrize("how", ["whole", "no wait", "not its channel", "no channel"])
def test_states_fit_what_is_waited_for(how: str, runs: dict[str, Path], tmp_path: Path) -> None:
    """Who waits has a channel that it is an end of, and nobody else has: else both are left out."""
    shutil.copytree(runs["pack_rows"], tmp_path / "run")
    folder = tmp_path / "run" / "trace"
    (number,) = (each.stem.partition("-")[2] for each in sorted(folder.glob("states-*"))[-1:])
    states, waiting = (
        read_table(folder / f"{name}-{number}.table") for name in ("states", "waiting")
    )
    channels = read_table(folder / "channels.table")
    its, unit = waiting["channel"][0], waiting["unit"][0]
    (at,) = np.flatnonzero(states["unit"] == unit)
    assert states["waits_for"][at] in ("send", "receive")
    ends = (channels["producer"] == unit) | (channels["consumer"] == unit)
    if how == "no wait":
        states["waits_for"][at] = ""
    elif how == "not its channel":
        waiting["channel"][0] = np.flatnonzero(~ends)[0]
    elif how == "no channel":
        waiting = {name: column[1:] for name, column in waiting.items()}
    assert its in np.flatnonzero(ends)
    write_table(folder / f"states-{number}.table", states)
    write_table(folder / f"waiting-{number}.table", waiting)

    trace = Trace(tmp_path / "run")
    told = [] if how == "whole" else ["states and waiting do not fit together, they are left out"]
    assert told == trace.problems
    for table in ("recorded_states", "waiting"):
        ((count,),) = trace.rows(f"SELECT count(*) FROM {table}")
        assert (how == "whole") == (count > 0)
    assert (how == "whole") is trace.has_state
