from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.trace.database import Connection, write_table
from fabric.analysis.trace.opened import Trace
from fabric.shell.cli import main
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
        engine = "compiled" if mode else "tasks"
        _, trace = record(program(name), folder / number, mode=mode, depths=depths, engine=engine)
        found[f"{name}{number if depths or mode else ''}"] = trace.folder.parent
    return found


def _asked(
    command: tuple[str, ...], run: Path, other: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
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
    values: Any = _NUMBERS if column.dtype.kind == "i" else _TEXTS
    values = (True, False) if column.dtype.kind == "b" else values
    given_, cells = data.draw(st.sampled_from(values)), column.tolist()
    if cells and data.draw(st.integers(0, 3)):
        cells[data.draw(st.integers(0, len(cells) - 1))] = given_
    else:
        cells = [given_] * len(cells)
    return np.array(cells, column.dtype)


def _read(file: Path) -> dict[str, np.ndarray]:
    return Connection().numpy(f"FROM '{file}'")


def _table_damaged(data: st.DataObject, file: Path) -> None:
    table = _read(file)
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
        table = {"x" if title == name else title: column for title, column in table.items()}
    elif how == "rows":
        count = data.draw(st.integers(0, len(table[name])))
        table = {title: column[:count] for title, column in table.items()}
    else:
        table = {title: np.concatenate([column, column]) for title, column in table.items()}
    write_table(Connection(), file, table)


@pytest.mark.deep
@examples(quick=6)
@given(st.data())
def test_damaged_table_is_refused_or_left_out(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(runs)))
    run = runs[name].parent.with_name("damaged")
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(runs[name], run)
    files = sorted((run / "trace").glob("*.parquet"))
    file = data.draw(st.sampled_from(files))
    how = data.draw(st.sampled_from(["bytes", *["table"] * 4, "other"]))
    if how == "bytes":
        _bytes_damaged(data, file)
    elif how == "table":
        _table_damaged(data, file)
    else:
        file.write_bytes(data.draw(st.sampled_from(files)).read_bytes())
    command = data.draw(st.sampled_from(_COMMANDS))
    status, printed = _asked(command, run, runs[name], capsys)
    if status == 2 and command[0] != "what-if":
        assert file.name in printed


_KINDS: Final = ("pipe", "folder", "itself", "zeros", "empty")


def _become(file: Path, kind: str) -> None:
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
def test_file_of_another_kind_is_refused_or_left_out(
    kind: str, name: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = runs[name]
    files = sorted(each.relative_to(source) for each in (source / "trace").iterdir())
    # Together, the cases replace files by every kind; the deep profile replaces every file.
    step = of_profile(quick=len(_KINDS), deep=1)
    for number, file in enumerate(files[list(_KINDS).index(kind) % step :: step]):
        run = tmp_path / str(number)
        shutil.copytree(source, run)
        _become(run / file, kind)
        status, printed = _asked(("summary",), run, source, capsys)
        assert file.name in printed or "did not record its end" in printed
        static = file.stem in ("units", "channels", "columns", "meta")
        assert status == (2 if static else 0), (file, printed)


@pytest.mark.parametrize("how", ["whole", "no wait", "not its channel", "no channel"])
def test_states_that_contradict_waits_are_left_out(
    how: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(runs["pack_rows"], tmp_path / "run")
    folder = tmp_path / "run" / "trace"
    (number,) = (each.stem.partition("-")[2] for each in sorted(folder.glob("states-*"))[-1:])
    states, waiting = (_read(folder / f"{name}-{number}.parquet") for name in ("states", "waiting"))
    channels = _read(folder / "channels.parquet")
    channel, unit = waiting["channel"][0], waiting["unit"][0]
    (at,) = np.flatnonzero(states["unit"] == unit)
    assert states["waits_for"][at] in ("send", "receive")
    ends = (channels["producer"] == unit) | (channels["consumer"] == unit)
    if how == "no wait":
        states["waits_for"][at] = ""
    elif how == "not its channel":
        waiting["channel"][0] = np.flatnonzero(~ends)[0]
    elif how == "no channel":
        waiting = {name: column[1:] for name, column in waiting.items()}
    assert channel in np.flatnonzero(ends)
    write_table(Connection(), folder / f"states-{number}.parquet", states)
    write_table(Connection(), folder / f"waiting-{number}.parquet", waiting)

    trace = Trace(tmp_path / "run")
    problem = "states and waiting do not fit together, they are left out"
    assert ([] if how == "whole" else [problem]) == trace.problems
    for table in ("recorded_states", "waiting"):
        ((count,),) = trace.rows(f"SELECT count(*) FROM {table}")
        assert (how == "whole") == (count > 0)
    assert (how == "whole") is trace.has_state
