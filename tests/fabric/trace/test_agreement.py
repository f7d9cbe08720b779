"""For one run, all views agree on every figure they share: ``tests.fabric.trace.views`` reads them.

Every program of the repository, completed, stopped by a failure and by an interrupt, deadlocked
where a depth can do that, and killed; and programs of the tests that stop in other ways.
"""

from __future__ import annotations

import io
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from fabric.shell.cli import main
from fabric.trace.recording.recorder import Recorder
from fabric.trace.recording.traced import TracedOffChip
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import program, record
from tests.fabric.trace.views import CAUSES, VIEWS, Seen

_ROOT: Final = Path(__file__).parents[3]


class Run(NamedTuple):
    """A run of a program.

    Attributes:
        program: a file of the repository, or a case of the deadlocks.
        ends: how.
        options: of the command line, or none.
    """

    program: str
    ends: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return what pytest calls it."""
        return " ".join((self.program, self.ends, *self.options[1::2]))


PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "simplified_moe": (),
    "swiglu": ("batch=32", "hidden=64", "inter=64"),
    "moe": ("model=tiny", "batch=16", "tiling=dynamic"),
    "moe regions": ("model=tiny", "batch=16", "tile_n=4", "regions=2"),
    "attention": ("requests=4", "regions=2"),
    "ragged_attention": ("requests=4", "longest=3"),
    "dynamic_tiling": ("sequences=4", "longest=6"),
    "buffer_twice": ("size=32",),
    "top2_moe": ("tokens=8",),
    "graph_layer": (),
    "own_function": (),
    "own_operator": (),
}

RUNS: Final = [
    *(Run(name, ends) for name in PROGRAMS for ends in ("completed", "error", "interrupted")),
    Run("simplified_moe", "deadlock", ("--depth", "reassemble_1.2=2")),
    Run("simplified_moe", "deadlock", ("--depth", "reassemble_1.2=4")),
    Run("top2_moe", "deadlock", ("--depth", "reassemble_1.6=1")),
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


@pytest.fixture(scope="module", params=RUNS, ids=str)
def views(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Run, dict[str, Seen]]]:
    """Run each once, and return what the views say."""
    run: Run = request.param
    parent = tmp_path_factory.mktemp("run")
    (parent / "report.txt").write_text("", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        # As to a file, with nothing cut.
        patch.delenv("COLUMNS", raising=False)
        if run.program in CASES:
            given = CASES[run.program].given
            record(program(run.program), parent, depths=given, livelock_cycles=10_000)
        else:
            _run_program(run, parent, patch)
        (folder,) = (each for each in parent.iterdir() if each.is_dir())
        found = {name: read(folder, _told) for name, read in VIEWS.items()}
    yield run, {name: _whole(each) for name, each in found.items() if each is not None}
    shutil.rmtree(parent)


def test_figures_agree(views: tuple[Run, dict[str, Seen]]) -> None:
    """Whatever two views both say is the same."""
    run, seen = views
    differences = []
    for figure in Seen._fields:
        said = {name: getattr(each, figure) for name, each in seen.items()}
        said = {name: value for name, value in said.items() if value is not None}
        for (one, left), (other, right) in combinations(said.items(), 2):
            if _shared(figure, left, right) != _shared(figure, right, left):
                differences.append(f"{figure}: {one} says {left}, {other} says {right}")
    assert not differences
    assert {run.ends} == {each.status for each in seen.values() if each.status is not None}


def test_units_account_for_all_cycles(views: tuple[Run, dict[str, Seen]]) -> None:
    """Every row sums to the run's cycles; who still waits is neither idle nor at its end."""
    run, seen = views
    told = seen["trace query"]
    assert told.columns is not None
    assert told.still is not None
    assert told.finished is not None

    assert {told.cycles} == {sum(each.values()) for each in told.columns.values()}
    assert not [unit for unit in told.still if told.columns[unit].get("idle")]
    assert not told.finished & told.still.keys()
    if run.ends == "completed":
        assert told.finished == told.columns.keys()
    if run.ends == "deadlock":
        assert told.finished | told.still.keys() == told.columns.keys()
    if run.ends != "completed":
        assert told.still


def test_nothing_bounds_what_did_not_complete(views: tuple[Run, dict[str, Seen]]) -> None:
    """The verdict of ``trace stalls`` is about a run that came to its end, or says that none is."""
    run, seen = views
    verdict = seen["trace stalls"].verdict
    assert verdict is not None
    expected = "Bound by " if run.ends == "completed" else f"Not completed ({run.ends}), so nothing"
    assert verdict.startswith(expected)
    assert seen["trace report"].verdict == verdict


def _shared(figure: str, one: Any, other: Any) -> Any:
    """Return what ``one`` says that ``other`` says too: some show the shares of a few units."""
    return {unit: one[unit] for unit in one if unit in other} if figure == "shares" else one


def _run_program(run: Run, parent: Path, patch: pytest.MonkeyPatch) -> None:
    """Run a program of the repository by the command line; stop it as asked for."""
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
    text = _told(*arguments, *run.options)
    (parent / "report.txt").write_text(text, encoding="utf-8")
    if run.ends == "killed":
        # What a run writes at its end is not there.
        (parent / "report.txt").write_text("", encoding="utf-8")
        for file in parent.glob("*/*.json"):
            file.unlink()


def _fail(patch: pytest.MonkeyPatch) -> None:
    """Let an operator raise an error when it hands over its burst."""

    def fail() -> None:
        raise RuntimeError("out of luck")

    _at_a_burst(patch, fail)


def _interrupt(patch: pytest.MonkeyPatch) -> None:
    """Send SIGINT, as Ctrl-C does."""
    _at_a_burst(patch, lambda: signal.raise_signal(signal.SIGINT))


def _kill(patch: pytest.MonkeyPatch) -> None:
    """Keep a state and the rows that were written a little later, and nothing after them."""
    recorders: list[Any] = []
    start = Recorder.start

    def started(recorder: Any, *arguments: Any) -> None:
        recorders.append(recorder)
        start(recorder, *arguments)

    def write_state() -> None:
        recorders[-1]._snapshot()

    def write_rows() -> None:
        recorders[-1]._spool.attempt("rows", lambda: None)

    patch.setattr(Recorder, "start", started)
    for later in ("finish", "conclude"):
        patch.setattr(Recorder, later, lambda *_: None)
    _at_a_burst(patch, write_state)
    _at_a_burst(patch, write_rows, number=5)


_STOPS: Final = {"error": _fail, "interrupted": _interrupt, "killed": _kill}


def _at_a_burst(patch: pytest.MonkeyPatch, act: Callable[[], object], number: int = 3) -> None:
    """Call ``act`` where the ``number``th burst is handed over, before it is."""
    submit = TracedOffChip.submit
    count = 0

    def submitted(memory: TracedOffChip, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == number:
            act()
        submit(memory, *arguments)

    patch.setattr(TracedOffChip, "submit", submitted)


def _told(*arguments: object) -> str:
    """Return what a command prints; those that only look succeed."""
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as told:
        status = main([str(each) for each in arguments])
    assert arguments[0] == "run" or not status, told.getvalue()
    return printed.getvalue()


def _whole(seen: Seen) -> Seen:
    """Return ``seen`` with the waits that its columns tell."""
    if seen.columns is None:
        return seen
    waits: dict[str, dict[str, int]] = {
        unit: {cause: cycles[cause] for cause in CAUSES if cause in cycles}
        for unit, cycles in seen.columns.items()
    }
    return seen._replace(waits={unit: cycles for unit, cycles in waits.items() if cycles})
