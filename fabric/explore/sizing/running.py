"""Runs of a program for its sizing, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from signal import SIGINT
from typing import Final, Literal, NamedTuple, TypeVar

from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.depths.problem import UNBOUNDED
from fabric.analysis.symbolic.substitution import Substitution
from fabric.explore.study.evaluation import ProgramQuestion
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.explore.study.study import held_out_places
from fabric.explore.study.written.words import setting_names
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError, Deadlock, FabricError
from fabric.messages.text import counted
from fabric.messages.users_code import Interrupted
from fabric.runs.comparison import check_assumptions, measured_sizes
from fabric.runs.execution import Execution
from fabric.runs.explaining import explain
from fabric.runs.options import Options, Settings
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.record_making import Recording
from fabric.timing.state.run_state import RunState

_DEFAULTS: Final = Options()
_MOST_EVENTS: Final = 20_000_000
Each = TypeVar("Each")
_OF_CHANNELS: Final = {"depth.": "sizing finds the depths", "hop.": "all inputs share it"}
_SHOWN: Final = 3


class Ran(NamedTuple):
    """A run that completed."""

    record: Record
    state: RunState
    cycles: int


class Stuck(FabricError):  # noqa: N818 - named as Deadlock
    """A run that ended in a deadlock or a livelock."""

    def __init__(self, run: Execution, ending: Literal["deadlock", "livelock"]) -> None:
        state, repeats = run.state, run.repeats
        inputs = "" if repeats == 1 else f" with {counted(repeats, 'input')} one after the other"
        super().__init__(
            f"{state.program}: {ending} at cycle {state.stopped_cycle:,}{inputs}: expected it to "
            "complete with these depths"
        )
        self.ending: Final = ending
        self.state: Final = state
        self._run: Final = run

    @cached_property
    def explained(self) -> DeadlockReport:
        return explain(self._run, self.ending)


def unbounded(program: Program) -> dict[str, int]:
    """Return depths, by option, that never delay a sender of ``program``."""
    return {edge.key: UNBOUNDED for edge in elaborate(program).edges}


@only_young_garbage()
def recorded(
    program: Program,
    depths: Mapping[str, int],
    options: Options = _DEFAULTS,
    *,
    repeats: int = 1,
) -> Ran:
    """Run ``program`` in timing mode, and record it.

    ``depths``: by ``consumer.input``; they override ``options.depths``. ``repeats``: number of
    inputs back to back; operators without inputs then run once for each. Assumptions about streams
    describe one input, and are checked only if ``repeats`` is 1.
    """
    plan = elaborate(program)
    recording = Recording(plan)
    settings = replace(
        Settings.of(options),
        mode="timing",
        depths={**(options.depths or {}), **depths},
        on_deadlock="describe",
    )
    run = Execution(program, settings, plan, repeats, (recording,))
    ending = run.execute()
    machine, state = run.machine, run.state
    if ending == "interrupted":
        raise Interrupted(run.signal or SIGINT)
    if machine.failures.first is not None:
        raise machine.failures.first
    if ending in ("deadlock", "livelock"):
        raise Stuck(run, ending)
    if repeats == 1:
        sizes = Substitution(measured_sizes(machine.plan, state).sizes)
        check_assumptions(machine.plan, state, machine.assumed, sizes)
    return Ran(recording.record(machine), state, state.cycles)


@dataclass(eq=False)
class Case:
    """A program with one input, and its runs with ``repeats`` inputs back to back.

    Attributes:
        depths: depths of the wired program, by option.
        unbounded: a run with unbounded channels.
        runs: number of runs.
    """

    name: str
    program: Program
    options: Options
    repeats: int
    notify: Callable[[str], object]
    runs: int = 0

    def __post_init__(self) -> None:
        deepest = unbounded(self.program)
        self.depths = {option: self.program.depth_of(option) for option in deepest}
        self._known: dict[tuple[int, ...], Ran | None] = {}
        try:
            self.unbounded = self._run(deepest)
        except Stuck as stuck:
            explained = stuck.explained
            raise Deadlock(
                f"{self.name or self.program.name} gets stuck even with unbounded channels: "
                f"{explained.summary}",
                report=explained.as_json(),
            ) from None

    def run(self, depths: Mapping[str, int]) -> Ran | None:
        """Return a run with ``depths`` of all channels; None for a deadlock."""
        key = self._key(depths)
        if key not in self._known:
            try:
                self._run(depths)
            except Stuck:
                self._known[key] = None
                self._report("got stuck")
        return self._known[key]

    def _run(self, depths: Mapping[str, int]) -> Ran:
        self._forget()
        self.runs += 1
        ran = recorded(self.program, depths, self.options, repeats=self.repeats)
        self._known[self._key(depths)] = ran
        self._report(f"took {counted(ran.cycles, 'cycle')}")
        return ran

    def _report(self, result: str) -> None:
        name = f"{self.name}: " if self.name else ""
        self.notify(f"{name}run {self.runs:,} {result}")

    def has_run(self, depths: Mapping[str, int]) -> bool:
        """Return whether the result of a run with ``depths`` is in memory."""
        return self._key(depths) in self._known

    def _key(self, depths: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(depths[option] for option in self.depths)

    def _forget(self) -> None:
        # Drop the first run if the records take much memory.
        kept = [ran for ran in self._known.values() if ran is not None]
        if sum(len(ran.record.events) for ran in kept) > _MOST_EVENTS:
            del self._known[next(iter(self._known))]

    @cached_property
    def cycles_before(self) -> int | None:
        """Cycles with the depths of the wired program; None for a deadlock."""
        ran = self.run(self.depths)
        return None if ran is None else ran.cycles


def programs_of(
    file: Path, parameters: Sequence[str], over: Sequence[str], hardware: Path | None = None
) -> dict[str, Program]:
    """Return the wired programs of a file by input, such as ``seed=3, routing=a.npz``.

    ``over`` is as in a study; see ``opening.space_of``.
    """
    study = open_study(file, StudyOptions(over=over, parameters=parameters, hardware=hardware))
    for name in (*study.fixed, *study.over.values):
        for beginning, why in _OF_CHANNELS.items():
            if name.startswith(beginning):
                raise ConfigurationError(
                    f"{name} is stated: {why}: expected parameters of build() and hardware keys"
                )
    question = ProgramQuestion.of(study)
    programs = {
        name: question.loaded(study.over[index])[0].program
        for index, name in enumerate(setting_names(study.over))
    }
    check_alike(programs)
    return programs


def check_alike(programs: Mapping[str, Program]) -> None:
    options = {
        name: [edge.key for edge in elaborate(program).edges] for name, program in programs.items()
    }
    first, *others = options
    for other in others:
        only = _only(options, first, other) + _only(options, other, first)
        if only:
            raise ConfigurationError(
                f"{first} has {counted(len(options[first]), 'channel')} and {other} has "
                f"{counted(len(options[other]), 'channel')}: {'; '.join(only)}: expected inputs "
                "for which the program has the same channels"
            )


def held_out(points: Mapping[str, Each], count: int) -> tuple[dict[str, Each], dict[str, Each]]:
    """Return the inputs to find depths for, and the ``count`` inputs that test these depths."""
    places = held_out_places(len(points), count, f"--hold-out {count}")
    chosen: dict[str, Each] = {}
    tested: dict[str, Each] = {}
    for place, (name, point) in enumerate(points.items()):
        (tested if place in places else chosen)[name] = point
    return chosen, tested


def _only(options: Mapping[str, Sequence[str]], one: str, other: str) -> list[str]:
    of_other = set(options[other])
    missing = [option for option in options[one] if option not in of_other]
    if not missing:
        return []
    rest = len(missing) - _SHOWN
    more = f" and {rest:,} more" if rest > 0 else ""
    return [f"{one} alone has {', '.join(missing[:_SHOWN])}{more}"]
