"""What ``trace`` prints are the figures of the objects that a library user gets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from fabric import Trace, open_trace
from fabric.analysis.deadlock.text import report_lines
from fabric.shell.cli import main
from tests.fabric.trace.recording import program, record
from tests.profiles import spread

_DEPTHS: Final = {"stopped": {"reassemble_1.2": 2}}
_PROGRAMS: Final = {"stopped": "simplified_moe", "regions": "moe regions", "attention": "attention"}
_CAUSES: Final = ("busy", "empty", "full", "hbm", "capacity", "idle")
_LABELS: Final = {"hbm": "HBM"}


@pytest.fixture(scope="module", params=_PROGRAMS)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of a run; one of them stopped."""
    name: str = request.param
    wired, depths = program(_PROGRAMS[name]), _DEPTHS.get(name)
    return record(wired, tmp_path_factory.mktemp("run"), depths=depths)[1]


@pytest.fixture
def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, trace: Trace
) -> _Printed:
    """Return what prints of ``trace``, as wide as what is piped."""
    monkeypatch.delenv("COLUMNS", raising=False)
    return _Printed(capsys, trace.folder)


class _Printed:
    """Commands of ``trace``, and the words on their lines."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capsys = capsys
        self._folder = folder

    def tables(self, command: str, *options: object) -> list[list[str]]:
        """Return the lines of each part of what ``command`` prints, one blank between words."""
        arguments = ["trace", command, self._folder, *options]
        assert 0 == main([str(each) for each in arguments])
        parts = self._capsys.readouterr().out.split("\n\n")
        return [[" ".join(line.split()) for line in part.splitlines()] for part in parts]


def _line(*cells: object) -> str:
    """Return a row as it is printed, one blank between words."""
    texts = (
        "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell for cell in cells
    )
    return " ".join(" ".join(map(str, texts)).split())


def _lines(rows: Iterable[tuple[object, ...]]) -> list[str]:
    return [_line(*row) for row in rows]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}"


def _wired(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


def test_stalls(trace: Trace, printed: _Printed) -> None:
    """Units, roots, the path and its phases; each unit's cycles sum to those accounted for."""
    stalls = trace.stalls()
    path = stalls.critical_path
    stages, units, roots, through, over_time, *gains, verdict = printed.tables(
        "stalls", "--rows", 100_000, "--unfold"
    )

    assert (
        _lines(
            (
                stage.name,
                stage.units,
                _share(stage.path_cycles, stalls.cycles),
                None
                if stage.headroom_cycles is None
                else _share(stage.headroom_cycles, stalls.cycles),
                stage.off_chip_bytes,
                stage.on_chip_bytes,
                _wired(stage.file, stage.line),
            )
            for stage in stalls.folded.stages
        )
        == stages[2:]
    )
    shown = [each for each in _CAUSES if any(getattr(u, f"{each}_cycles") for u in stalls.units)]
    assert (
        _line("unit", *(_LABELS.get(each, each) for each in shown), "mostly wired at") == units[1]
    )
    assert (
        _lines(
            (
                unit.name,
                *(getattr(unit, f"{each}_cycles") for each in shown),
                unit.mostly,
                _wired(unit.file, unit.line),
            )
            for unit in stalls.units
        )
        == units[2:]
    )
    for unit in stalls.units:
        assert stalls.cycles == unit.busy_cycles + unit.stalled_cycles + unit.idle_cycles
    assert f"{stalls.stalled_cycles:,} stalled cycles" in roots[0]
    assert stalls.stalled_cycles == sum(unit.stalled_cycles for unit in stalls.units)
    assert (
        _lines(
            (each.root.name, each.cycles, _share(each.cycles, stalls.stalled_cycles), each.units)
            for each in stalls.roots
        )
        == roots[2:]
    )
    assert (
        _lines(
            (each.root.name, each.cycles, _share(each.cycles, path.cycles)) for each in path.shares
        )
        == through[2:]
    )
    assert (
        _lines(
            (each.start_cycle, each.end_cycle, f"{100 * each.share:.1f}", each.root.name)
            for each in path.phases
        )
        == over_time[2:]
    )
    assert [
        _lines(
            (
                gain.change,
                gain.changed_cycles,
                _share(stalls.cycles - gain.changed_cycles, stalls.cycles),
                "estimated" if gain.estimated else "exact",
            )
            for kind in ("memory", "family", "depth")
            for gain in sorted(stalls.gains or (), key=lambda gain: gain.changed_cycles)
            if gain.kind == kind
        )
        for _ in gains
    ] == [table[2:] for table in gains]
    assert len(gains) == bool(stalls.gains)
    assert [stalls.verdict] == verdict
    assert ("" if trace.status == "completed" else f"Critical path, {path.note}") in through[0]


def test_critical_path(trace: Trace) -> None:
    """Asked alone it is the same; its steps cover every cycle once, and are what is shared."""
    path = trace.critical_path()

    assert trace.stalls().critical_path == path
    ends = [step.end_cycle for step in path.steps]
    assert [trace.window[0], *ends[:-1]] == [step.start_cycle for step in path.steps]
    assert trace.window[1] == ends[-1]
    for share in path.shares:
        through = [step for step in path.steps if step.root == share.root]
        assert share.cycles == sum(step.end_cycle - step.start_cycle for step in through)
    assert path.cycles == sum(share.cycles for share in path.shares)


@pytest.mark.parametrize("part", spread([0, 1, 3, 10], 3))
def test_at(trace: Trace, printed: _Printed, part: int) -> None:
    """Units and channels in a cycle, all of them or those around one."""
    cycle = trace.cycles * part // 10
    moment = trace.at(cycle)
    name = moment.units[len(moment.units) // 2].name
    for shown, options in ((moment, ()), (moment.around(name), ("--around", name))):
        units, channels = printed.tables("show", "--at", cycle, *options)

        assert f"Cycle {cycle:,}" == units[0]
        assert (
            _lines(
                (
                    unit.name,
                    unit.since_cycle,
                    unit.until_cycle,
                    _wired(unit.file, unit.line),
                    unit.doing,
                )
                for unit in shown.units
            )
            == units[2:]
        )
        assert (
            _lines(
                (each.name, f"{each.held}/{each.depth}", each.sent, each.taken, each.bare_stops)
                for each in shown.channels
            )
            == channels[2:]
        )
        assert cycle == shown.cycle == shown.state.cycles
        assert name in {unit.name for unit in shown.units}


def test_summary_and_deadlock(trace: Trace, printed: _Printed) -> None:
    """Counts, and who had not ended; the deadlock is the run's own."""
    summary, deadlock = trace.summary(), trace.deadlock()
    head, recorded, *left = printed.tables("summary", "--unfold")

    assert head[-1] == f"{summary.outcome} in {summary.mode} mode, {summary.cycles:,} cycles"
    assert (
        _lines(
            (
                ("units", summary.units),
                ("channels", summary.channels),
                ("transfers", summary.transfers),
                ("elements still held", summary.held_elements),
                ("bursts", summary.bursts),
                ("bytes of the HBM", summary.hbm_bytes),
                ("waits", summary.waits),
            )
        )
        == recorded[2:]
    )
    told = printed.tables("deadlock")
    if deadlock is None:
        assert not left
        assert f"No unit waits for ever: completed at cycle {trace.cycles:,}." == told[0][0]
        assert f"{summary.units} of {summary.units} units had ended, 0 waited" in told[0][1]
        return
    rows = [(unit, channel) for unit in summary.not_ended for channel in unit.channels]
    assert (
        _lines(
            (
                unit.name,
                unit.waits_for and unit.waits_for.awaits,
                channel,
                unit.since_cycle,
                f"{unit.file}:{unit.line}",
            )
            for unit, channel in rows[:20]
        )
        == left[0][2:22]
    )
    expected = "\n".join(report_lines(deadlock)).split("\n\n")
    assert [[" ".join(line.split()) for line in part.splitlines()] for part in expected] == told


def test_diff(trace: Trace, printed: _Printed, tmp_path: Path) -> None:
    """Where two runs part, and what changed for their units."""
    other = record(program("simplified_moe"), tmp_path)[1]
    diff = trace.diff(open_trace(other.folder))
    head, parting, *units = printed.tables("diff", other.folder, "--rows", 100_000)

    for letter, name, outcome, cycles, line in zip(
        "AB", diff.names, diff.outcomes, diff.cycles, head[:2], strict=True
    ):
        assert f"{letter} {name} {outcome}, {cycles:,} cycles" == line
    assert [f"{each.name}: {each.in_a} in A, {each.in_b} in B" for each in diff.settings] == head[
        2:
    ]
    assert diff.parting is not None
    assert (
        f"They part at cycle {diff.parting.cycle:,}: element {diff.parting.element:,}" in parting[0]
    )
    for stamps, line in zip((diff.parting.in_a, diff.parting.in_b), parting[1:], strict=True):
        assert ("it was not sent" if stamps is None else f"in cycle {stamps.sent_cycle:,}") in line
    if not diff.units:
        assert not units
        return
    changes = [each for each in _CAUSES if each != "idle"]
    both = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}
    assert (
        _lines(
            (
                unit.name,
                both.get((bool(unit.ended_in_a), bool(unit.ended_in_b)), f"{unit.end_cycles:+,}"),
                *(f"{getattr(unit, f'{each}_cycles'):+,}" for each in changes),
                _wired(unit.file, unit.line),
            )
            for unit in diff.units
        )
        == units[0][2:]
    )


def test_query(trace: Trace, printed: _Printed) -> None:
    """Rows, in their order."""
    answer = trace.query("longest-waits")
    (table,) = printed.tables("query", "longest-waits", "--unfold")

    assert _line(*answer.columns) == table[0]
    rows = [
        tuple(
            {True: "yes", False: "no"}.get(cell, cell) if isinstance(cell, bool) else cell
            for cell in row
        )
        for row in answer.rows()
    ]
    assert _lines(rows) == table[1:]
