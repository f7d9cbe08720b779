from __future__ import annotations

import io
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from msgspec import structs

from fabric.analysis.trace.analysis.moment import state_in
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.recorder import Recorder
from fabric.analysis.trace.spool import Spool
from fabric.runs.execution import Execution
from fabric.shell.cli import main
from fabric.timing.compiled import region
from fabric.timing.engine.off_chip import LoggedOffChip
from fabric.timing.machine.machine import state_of
from fabric.timing.state.run_state import Ending, RunState
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import program, record
from tests.fabric.trace.views import CAUSES, VIEWS, Seen
from tests.profiles import spread
from tests.schedules import schedule

_ROOT: Final = Path(__file__).parents[3]


class Run(NamedTuple):
    program: str
    ends: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.program, self.ends, *self.options[1::2]))


PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "simplified_moe": (),
    "swiglu": ("batch=32", "hidden=64", "inter=64"),
    "moe regions": ("model=tiny", "batch=16", "tile_n=4", "regions=2"),
    "attention": ("requests=4", "regions=2"),
    "ragged_attention": ("requests=4", "longest=3"),
    "buffer_twice": ("size=32",),
    "top2_moe": ("tokens=8",),
    "own_operator": (),
}

ON_A_MESH: Final = ("--hardware", "mesh_paper")

RUNS: Final = [
    *(Run(name, ends) for name in PROGRAMS for ends in ("completed", "error", "interrupted")),
    Run("simplified_moe", "deadlock", ("--depth", "reassemble_1.2=2")),
    Run("simplified_moe", "deadlock", ("--depth", "reassemble_1.2=4")),
    Run("top2_moe", "deadlock", ("--depth", "reassemble_1.6=1")),
    Run("simplified_moe", "deadlock", ("--depth", "reassemble_1.2=2", *ON_A_MESH)),
    *(
        Run(name, ends, ON_A_MESH)
        for name in ("swiglu", "moe regions")
        for ends in ("completed", "error", "interrupted")
    ),
    *(Run(name, "killed") for name in ("simplified_moe", "attention", "own_operator")),
    *(
        Run(name, "livelock" if name.startswith("round") else "deadlock")
        for name in (
            "pack_rows", "packed_experts", "merge_in_a_loop", "ring_of_7", "lost_buffer",
            "two_buffers_and_a_ring", "ended_behind_a_chain", "leaking_slots", "round_and_round",
            "round_and_round_beside_a_ring",
        )
    ),
]  # fmt: skip


class RunViews(NamedTuple):
    run: Run
    seen: dict[str, Seen]
    at_end: RunState
    recorded: RunState


@pytest.fixture(scope="module", params=spread(RUNS, 1), ids=str)
def run_views(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunViews]:
    run: Run = request.param
    parent = tmp_path_factory.mktemp("run")
    (parent / "report.txt").write_text("", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        # Without COLUMNS the output is not cut, as in a file.
        patch.delenv("COLUMNS", raising=False)
        states = _states_at_end(patch)
        if run.program in CASES:
            given = CASES[run.program].given
            record(program(run.program), parent, depths=given, livelock_cycles=10_000)
        else:
            _run_program(run, parent, patch)
        (folder,) = (each for each in parent.iterdir() if each.is_dir())
        found = {name: read(folder, _output) for name, read in VIEWS.items()}
    seen = {name: _whole(each) for name, each in found.items() if each is not None}
    (at_end,) = states
    yield RunViews(run, seen, at_end, state_in(Trace(folder)))
    shutil.rmtree(parent)


def test_figures_of_all_views_agree(run_views: RunViews) -> None:
    run, seen, *_ = run_views
    differences = []
    for figure in Seen._fields:
        said = {name: getattr(each, figure) for name, each in seen.items()}
        said = {name: value for name, value in said.items() if value is not None}
        for (one, left), (other, right) in combinations(said.items(), 2):
            if _shared(figure, left, right) != _shared(figure, right, left):
                differences.append(f"{figure}: {one} says {left}, {other} says {right}")
    assert not differences
    assert {run.ends} == {each.status for each in seen.values() if each.status is not None}


def test_state_of_a_trace_is_that_of_the_machine(run_views: RunViews) -> None:
    # The trace does not record the end of a stream for which no unit waits; its state has None.
    run, _, at_end, recorded = run_views
    if run.ends == "killed":
        return
    waited_for = {number for unit in at_end.units if unit.wait for number in unit.wait.channels}
    channels = tuple(
        channel if channel.number in waited_for else structs.replace(channel, closed_cycle=None)
        for channel in at_end.channels
    )
    assert at_end.units == recorded.units
    assert channels == recorded.channels
    assert replace(at_end, channels=channels) == recorded
    assert hash(replace(at_end, channels=channels)) == hash(recorded)


def test_rows_of_units_sum_to_the_cycles_of_the_run(run_views: RunViews) -> None:
    run, seen, *_ = run_views
    query = seen["trace query"]
    assert query.columns is not None
    assert query.still is not None
    assert query.finished is not None

    assert {query.cycles} == {sum(each.values()) for each in query.columns.values()}
    assert not [unit for unit in query.still if query.columns[unit].get("idle")]
    assert not query.finished & query.still.keys()
    if run.ends == "completed":
        assert query.finished == query.columns.keys()
    if run.ends == "deadlock":
        assert query.finished | query.still.keys() == query.columns.keys()
    if run.ends != "completed":
        assert query.still


def test_verdict_of_a_stopped_run_names_no_bound(run_views: RunViews) -> None:
    run, seen, *_ = run_views
    verdict = seen["trace stalls"].verdict
    assert verdict is not None
    if run.ends == "completed":
        assert verdict.startswith(("Nothing alone bounds the run", "Bound by "))
    else:
        assert verdict.startswith(f"Not completed ({run.ends}), so nothing")
    assert seen["trace report"].verdict == verdict


def _shared(figure: str, one: Any, other: Any) -> Any:
    return {unit: one[unit] for unit in one if unit in other} if figure == "shares" else one


def _states_at_end(patch: pytest.MonkeyPatch) -> list[RunState]:
    execute = Execution.execute
    states: list[RunState] = []

    def executed(run: Execution) -> Ending:
        ending = execute(run)
        states.append(state_of(run.machine))
        return ending

    patch.setattr(Execution, "execute", executed)
    return states


def _run_program(run: Run, parent: Path, patch: pytest.MonkeyPatch) -> None:
    arguments = [
        "run",
        str(_ROOT / "programs" / f"{run.program.split()[0]}.py"),
        "--trace",
        "events",
    ]
    arguments += ["--log-dir", str(parent)]
    for each in PROGRAMS[run.program]:
        arguments += ["-p", each]
    if run.ends in _STOPS:
        _STOPS[run.ends](patch)
    # The schedule decides which unit submits the burst at which the run is killed.
    with schedule("natural") if run.ends == "killed" else nullcontext():
        text = _output(*arguments, *run.options)
    (parent / "report.txt").write_text(text, encoding="utf-8")
    if run.ends == "killed":
        # A killed run has not written the files of its end.
        (parent / "report.txt").write_text("", encoding="utf-8")
        for file in parent.glob("*/*.json"):
            file.unlink()


def _fail(patch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("out of luck")

    _at_a_burst(patch, fail)


def _interrupt(patch: pytest.MonkeyPatch) -> None:
    _at_a_burst(patch, lambda: signal.raise_signal(signal.SIGINT))


def _kill(patch: pytest.MonkeyPatch) -> None:
    recorders: list[Any] = []
    start = Recorder.start

    def started(recorder: Any, *arguments: Any) -> None:
        recorders.append(recorder)
        start(recorder, *arguments)

    def write_state() -> None:
        recorders[-1]._snapshot()

    def write_rows() -> None:
        recorders[-1].spool.attempt("rows", lambda: None)
        patch.setattr(Spool, "keep", lambda *_: None)

    async def write_nothing(_: Recorder) -> None:
        pass

    patch.setattr(Recorder, "start", started)
    patch.setattr(Recorder, "run", write_nothing)
    for later in ("finish", "conclude"):
        patch.setattr(Recorder, later, lambda *_: None)
    _at_a_burst(patch, write_state)
    _at_a_burst(patch, write_rows, number=5)


_STOPS: Final = {"error": _fail, "interrupted": _interrupt, "killed": _kill}


def _at_a_burst(patch: pytest.MonkeyPatch, act: Callable[[], object], number: int = 3) -> None:
    submit = LoggedOffChip.submit
    counts: Counter[LoggedOffChip] = Counter()

    def submitted(memory: LoggedOffChip, *arguments: Any) -> None:
        counts[memory] += 1
        if counts[memory] == number:
            act()
        submit(memory, *arguments)

    patch.setattr(region, "FlatMemory", None)  # otherwise the compiled loop submits bursts itself
    patch.setattr(LoggedOffChip, "submit", submitted)


def _output(*arguments: object) -> str:
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as run_views:
        status = main([str(each) for each in arguments])
    assert arguments[0] == "run" or not status, run_views.getvalue()
    return printed.getvalue()


def _whole(seen: Seen) -> Seen:
    if seen.columns is None:
        return seen
    waits: dict[str, dict[str, int]] = {
        unit: {cause: cycles[cause] for cause in CAUSES if cause in cycles}
        for unit, cycles in seen.columns.items()
    }
    return seen._replace(waits={unit: cycles for unit, cycles in waits.items() if cycles})
