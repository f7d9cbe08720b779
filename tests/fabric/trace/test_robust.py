from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.analysis.moment import deadlock_of
from fabric.analysis.trace.opened import Trace
from fabric.display.terminal import plain_text
from fabric.shell.cli import main
from tests.fabric.trace.recording import program, record
from tests.profiles import examples, spread


def test_unwritable_trace_folder_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace").write_text("in the way", encoding="utf-8")
    monkeypatch.setattr("fabric.runs.simulation.new_run_folder", lambda *_: tmp_path)

    with pytest.raises(ConfigurationError) as refused:
        record(program("simplified_moe"), tmp_path)

    assert refused.value.message == (
        f"trace {tmp_path / 'trace'}: File exists: expected a folder that can be written"
    )


@pytest.mark.parametrize("name", spread(["states", "waiting"], 1))
def test_damaged_snapshot_leaves_the_operations(name: str, tmp_path: Path) -> None:
    report, whole = record(program("pack_rows"), tmp_path, engine="tasks")
    (whole.folder / f"{name}-000001.parquet").write_bytes(b"PAR1")

    trace = Trace(whole.folder)
    (problem,) = trace.problems
    assert problem.startswith(f"{name}-000001.parquet is damaged, it is left out: ")
    Accounts(trace)
    said = deadlock_of(trace)
    assert said is not None
    assert report.deadlock == said.as_json()

    (whole.folder.parent / "deadlock.json").unlink()
    assert said == trace.deadlock()
    trace = Trace(whole.folder)
    assert trace.deadlock() is None
    assert "The trace has no record" in plain_text(trace.summary().waiting_sheet(), 100)


def test_segments_after_a_missing_one_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabric.timing.engine.log.ROWS", 100)
    _, whole = record(program("simplified_moe"), tmp_path)
    (whole.folder / "operations-000002.parquet").unlink()

    trace = Trace(whole.folder)
    assert trace.problems == [
        "operations-000003.parquet is damaged, its rows and later ones are left out: "
        "operations-000002.parquet is missing"
    ]
    assert 0 < len(trace.entries()) < len(whole.entries())


FILES = ("trace/meta.json", "trace/end.json", "deadlock.json")
OF_ALL_KINDS: tuple[object, ...] = (
    None, True, -1, 0, 1 << 70, 1.5, float("nan"), float("inf"), "x", "\x1b[31m", [], {}, [1]
)  # fmt: skip


def _places(found: object) -> list[tuple[str, ...]]:
    places: list[tuple[str, ...]] = [()]
    if isinstance(found, dict):
        places += [(name, *place) for name, fields in found.items() for place in _places(fields)]
    return places


def _with(found: Any, place: tuple[str, ...], value: object) -> Any:
    if not place:
        return value
    return found | {place[0]: _with(found[place[0]], place[1:], value)}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    report, _ = record(program("pack_rows"), tmp_path_factory.mktemp("stuck"))
    assert report.log_dir is not None
    return Path(report.log_dir)


def _every_command_says_something(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("summary", "stalls", "deadlock", "what-if", "show"):
        options = ["--at", "3"] if command == "show" else []
        status = main(["trace", command, str(run), *options])
        out, err = capsys.readouterr()
        assert "Traceback" not in err, err
        assert "\x1b" not in out + err
        assert status in (0, 2, 3), (command, status, err)


@pytest.mark.deep
@examples(quick=6)
@given(st.data())
def test_damaged_json_is_answered_or_refused(
    stuck: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    file = stuck / data.draw(
        st.sampled_from(["trace/meta.json", "trace/end.json", "deadlock.json"])
    )
    content = file.read_bytes()
    found = json.loads(content)
    damaged = _with(
        found, data.draw(st.sampled_from(_places(found))), data.draw(st.sampled_from(OF_ALL_KINDS))
    )
    file.write_text(json.dumps(damaged), "utf-8")
    try:
        _every_command_says_something(stuck, capsys)
    finally:
        file.write_bytes(content)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "\udcff", ""])
@pytest.mark.parametrize("name", spread(FILES, 1))
def test_deep_or_long_json_is_answered_or_refused(
    stuck: Path, name: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = stuck / name
    before = file.read_bytes()
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    try:
        _every_command_says_something(stuck, capsys)
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (99, ": the trace has schema version 99: expected at most 6; a newer step-fabric wrote it"),
        (5, ": the trace has schema version 5: expected 6; an older step-fabric wrote it"),
        (None, "/meta.json is damaged: expected the file as the run wrote it"),
    ],
)
def test_trace_of_another_schema_is_refused(version: object, said: str, tmp_path: Path) -> None:
    _, whole = record(program("simplified_moe"), tmp_path)
    meta = json.loads((whole.folder / "meta.json").read_text(encoding="utf-8"))
    other = json.dumps(meta | {"schema_version": version})
    (whole.folder / "meta.json").write_text(other, encoding="utf-8")

    with pytest.raises(ConfigurationError) as refused:
        Trace(whole.folder)
    assert refused.value.message == f"{whole.folder}{said}"
