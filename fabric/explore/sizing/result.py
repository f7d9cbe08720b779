"""Result of sizing: depths with their reasons and proof, and their tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, starmap
from typing import Final, Literal, NamedTuple

from typing_extensions import override

from fabric.display.parts import SHOWN, Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.messages.text import JsonObject, counted, families, visible

Truth = Literal["proved", "validated"]
Binding = Literal["one slot", "deadlock", "goal", "pinned", ""]
_HOPS_SHOWN: Final = 4


class Answer(NamedTuple):
    """Depths for back-to-back inputs, and the cycles of each program; None for a deadlock."""

    depths: Mapping[str, int]
    cycles: tuple[int | None, ...]


@dataclass(frozen=True)
class Settled:
    """The change of depths and cycles with the number of inputs.

    Attributes:
        repeats: number of inputs in the last answer.
        since: number of inputs from which depths and period are constant; None if they have not
            been equal twice in a row.
        period_cycles: cycles for the last input, of each program; None for one input or a
            deadlock.
        depths_stay: whether the last two answers have equal depths.
    """

    repeats: int
    since: int | None
    period_cycles: tuple[int, ...] | None
    depths_stay: bool

    @override
    def __str__(self) -> str:
        if self.since is not None:
            periods = " and ".join(counted(cycles, "cycle") for cycles in self.period_cycles or ())
            return f"settled from {counted(self.since, 'input')} on: {periods} for each further one"
        if self.repeats < _LEAST:
            return f"too few to see whether the depths settle: expected {_LEAST}"
        still = "the cycles of a further input" if self.depths_stay else "the depths"
        return f"not settled: {still} still change"


_LEAST = 3


def settled(answers: Sequence[Answer]) -> Settled:
    """Compare the answers for 1, 2, 3 and more inputs."""
    count, last = len(answers), answers[-1]
    periods = list(starmap(_period, pairwise(answers)))
    since = count
    while since > 1:
        before = answers[since - 2]
        if before.depths != last.depths or periods[since - 2] != periods[-1]:
            break
        since -= 1
    period = periods[-1] if periods else None
    return Settled(
        repeats=count,
        since=since if period is not None and count - since >= _LEAST - 1 else None,
        period_cycles=period,
        depths_stay=count > 1 and answers[-2].depths == last.depths,
    )


def _period(one: Answer, other: Answer) -> tuple[int, ...] | None:
    periods = []
    for before, after in zip(one.cycles, other.cycles, strict=True):
        if before is None or after is None:
            return None
        periods.append(after - before)
    return tuple(periods)


@dataclass(frozen=True)
class SizedChannel:
    """A channel and its depth.

    Attributes:
        option: its name in ``--depth``, ``consumer.input``.
        name: ``producer.output -> consumer.input``.
        element_bytes: bytes of the largest element.
        elements: number of elements and bare stops, the maximum over all inputs.
        least_depth: least depth that keeps the goal if all other channels are unbounded.
        binds: why the depth is not smaller. With one slot less, the run ends in a ``deadlock`` or
            misses the ``goal``; or the depth is ``one slot`` or ``pinned``. Empty if one slot less
            keeps the goal or was not tried.
        group: the pattern of channels that share the depth; empty if it is not shared.
        input: the input that decides: with one slot less it has the most cycles relative to its
            limit, or ends in a deadlock. Empty if ``binds`` is neither deadlock nor goal.
    """

    option: str
    name: str
    element_bytes: int
    elements: int
    depth_before: int
    depth: int
    least_depth: int
    binds: Binding
    group: str
    input: str = ""


@dataclass(frozen=True)
class MethodTotal:
    """The result of a method.

    Attributes:
        cost: in the objective's unit; None without depths.
        cycles: cycles of the worst input; None for a deadlock.
        keeps: whether all inputs keep the goal.
        note: how the depths were found, or why there are none.
        input: the worst input.
    """

    method: str
    cost: int | None
    cycles: int | None
    keeps: bool
    note: str = ""
    input: str = ""


@dataclass(frozen=True)
class Input:
    """An input of the sizing.

    Attributes:
        cycles_before: cycles with the depths of the wired program; None for a deadlock.
        cycles_unbounded: cycles with unbounded channels.
        limit_cycles: limit of the goal; None if the run only has to end.
        cycles: cycles with the depths found; None for a deadlock.
    """

    name: str
    cycles_before: int | None
    cycles_unbounded: int
    limit_cycles: int | None
    cycles: int | None


@dataclass(frozen=True)
class HeldOut:
    """A held-out input; see ``Input``."""

    name: str
    limit_cycles: int | None
    cycles: int | None

    @property
    def violated(self) -> bool:
        if self.cycles is None:
            return True
        return self.limit_cycles is not None and self.cycles > self.limit_cycles


@dataclass(frozen=True, repr=False)
class Sizing(Result):
    """Depths of channels that keep a goal.

    Attributes:
        objective: the minimised cost, in ``bytes`` or ``slots``.
        channels: the channels with their depths, in edge order.
        cost_before: the cost of the depths of the wired program.
        cost: the cost of the depths found.
        lower_bound: lower bound of the cost of depths that keep the goal.
        truth: ``proved`` from the record of a run, or ``validated`` by running the program.
        keeps: whether runs of all inputs keep the goal.
        reasons: why the depths could not be proved, in sentences.
        inputs: the inputs that the depths serve.
        repeats: number of inputs back to back.
        settled: whether more inputs would change the depths; None for one input.
        evaluations: number of timings of records.
        runs: number of runs of the program.
        hops: latencies of channels other than 1+1, as ``--hop`` takes them; empty if placed.
        is_placed: whether units have sites on a mesh, so that routes determine the hops.
    """

    program: str
    goal: str
    method: str
    objective: str
    channels: tuple[SizedChannel, ...] = field(repr=False)
    cost_before: int
    cost: int
    lower_bound: int
    truth: Truth
    keeps: bool
    reasons: tuple[str, ...]
    inputs: tuple[Input, ...]
    held_out: tuple[HeldOut, ...] = ()
    methods: tuple[MethodTotal, ...] = ()
    repeats: int = 1
    settled: Settled | None = None
    evaluations: int = 0
    runs: int = 0
    hops: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_placed: bool = False

    @cached_property
    def depths(self) -> dict[str, int]:
        """Depths by ``consumer.input``, as ``simulate(depths=...)`` takes them."""
        return {channel.option: channel.depth for channel in self.channels}

    @property
    def violated(self) -> tuple[HeldOut, ...]:
        """Held-out inputs that miss the goal."""
        return tuple(each for each in self.held_out if each.violated)

    @property
    def worst(self) -> Input:
        """The input with the most cycles relative to its limit; a deadlock is worst."""
        limits = [each.limit_cycles for each in self.inputs]
        return self.inputs[worst_input([each.cycles for each in self.inputs], limits)]

    def as_json(self) -> JsonObject:
        """Return the fields of the sizing that ``size --json`` prints."""
        worst = self.worst
        return {
            "goal": self.goal,
            "method": self.method,
            "objective": self.objective,
            "depths": self.depths,
            "hops": self.hops,
            "bytes": _bytes(self.channels, "depth"),
            "bytes_before": _bytes(self.channels, "depth_before"),
            "cost": self.cost,
            "cost_before": self.cost_before,
            "lower_bound": self.lower_bound,
            "lower_bound_bytes": self.lower_bound if self.objective != "slots" else None,
            "truth": self.truth,
            "keeps": self.keeps,
            "reasons": list(self.reasons),
            "input": worst.name,
            "cycles": worst.cycles,
            "cycles_before": worst.cycles_before,
            "cycles_unbounded": worst.cycles_unbounded,
            "evaluations": self.evaluations,
            "runs": self.runs,
            "repeats": self.repeats,
            "settled": None if self.settled is None else vars(self.settled),
            "channels": [vars(channel) for channel in self.channels],
            "inputs": [vars(each) for each in self.inputs],
            "held_out": [{**vars(each), "violated": each.violated} for each in self.held_out],
            "methods": [vars(each) for each in self.methods],
        }

    def sheet(self, shown: int = SHOWN) -> Sheet:
        """Yield the answer, its proof, and the tables, with at most ``shown`` rows of channels."""
        yield line((visible(self.program), "bold"), f"  {self.goal}")
        for sentence in _sentences(self):
            yield line(sentence)
        yield from _channels(self, shown)
        yield from _methods(self)
        yield from _inputs(self)
        yield from _held_out(self)


def worst_input(cycles: Sequence[int | None], limits: Sequence[int | None]) -> int:
    """Return the input with the most cycles relative to its limit; a deadlock is worst.

    Limits are None if the runs only have to end.
    """
    shares = [
        math.inf if taken is None else taken / (limit or 1)
        for taken, limit in zip(cycles, limits, strict=True)
    ]
    return shares.index(max(shares))


def _bytes(channels: Sequence[SizedChannel], depth: Literal["depth", "depth_before"]) -> int:
    return sum(channel.element_bytes * int(getattr(channel, depth)) for channel in channels)


def _sentences(sizing: Sizing) -> list[str]:
    unit = sizing.objective.removesuffix("s")
    kept = "" if sizing.keeps else "; they miss the goal"
    sentences = [
        _cycles(sizing.worst),
        f"{counted(sizing.cost, unit)} of channels, {sizing.cost_before:,} as it is wired, "
        f"found by {sizing.method}{kept}.",
    ]
    if sizing.lower_bound >= sizing.cost:
        sentences.append("No depths that keep the goal cost less.")
    else:
        above = sizing.cost - sizing.lower_bound
        percent = f", {100 * above / sizing.cost:.1f} %" if 1000 * above >= sizing.cost else ""
        sentences.append(
            f"Lower bound {counted(sizing.lower_bound, unit)}; this answer is at most "
            f"{counted(above, unit)} above it{percent}."
        )
    if sizing.is_placed:
        sentences.append("For runs on the same mesh, with units on the same sites.")
    if sizing.hops:
        sentences.append(f"For runs with {hops_text(sizing.hops)}.")
    if sizing.truth == "proved":
        sentences.append("Proved from the record of one run: its units do the same at any depths.")
    elif sizing.keeps:
        sentences.append(f"Validated by a run, not proved: {'; '.join(sizing.reasons)}.")
    if sizing.settled is not None:
        sentences.append(f"{counted(sizing.repeats, 'input')} back to back; {sizing.settled}.")
    return sentences


def hops_text(hops: Mapping[str, str]) -> str:
    """Return the options of ``hops`` for a run; at most four."""
    shown = " ".join(f"--hop {visible(name)}={hop}" for name, hop in [*hops.items()][:_HOPS_SHOWN])
    rest = len(hops) - _HOPS_SHOWN
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _cycles(run: Input) -> str:
    cycles, cycles_before = (
        "a deadlock" if cycles is None else f"{cycles:,}"
        for cycles in (run.cycles, run.cycles_before)
    )
    goal = "" if run.limit_cycles is None else f", goal at most {run.limit_cycles:,}"
    decisive = f" with {visible(run.name)}, the input that decides" if run.name else ""
    return (
        f"Cycles{decisive}: {cycles} with these depths{goal}; {cycles_before} as wired; "
        f"{run.cycles_unbounded:,} with unlimited channels."
    )


def _channels(sizing: Sizing, shown: int) -> Sheet:
    alike = families(
        sizing.channels,
        lambda channel: channel.option,
        lambda channel: channel.element_bytes,
        lambda channel: (
            *(channel.depth_before, channel.depth, channel.least_depth),
            *(channel.binds, channel.input),
        ),
    )
    several = len(sizing.inputs) > 1
    rows = [
        (
            title,
            len(members),
            members[0].depth_before,
            members[0].depth,
            members[0].least_depth,
            _bytes(members, "depth"),
            members[0].binds,
            *([members[0].input] if several else []),
        )
        for title, members in sorted(alike, key=lambda each: -_bytes(each[1], "depth"))
    ]
    yield Title("Channels by bytes", f", {len(sizing.channels):,} in all, equal ones in one row")
    columns = ("channel", "channels", "now", "depth", "at least", "bytes", "why not less")
    yield Rows((*columns, *(["input that decides"] if several else [])), rows, shown)


def _methods(sizing: Sizing) -> Sheet:
    several = len(sizing.inputs) > 1
    rows = [
        (
            each.method,
            each.cost,
            *([each.input] if several else []),
            "stuck" if each.cycles is None and each.cost is not None else each.cycles,
            each.keeps,
            each.note,
        )
        for each in sizing.methods
    ]
    source = "from one record of each input" if several else "from one record"
    if sizing.reasons:
        source = f"all except {sizing.method} from the record of its run"
    yield Title("The methods", f", {source}")
    worst = ["worst input"] if several else []
    columns = ("method", sizing.objective, *worst, "cycles", "keeps the goal", "")
    yield Rows(columns, rows, right=frozenset({columns.index("cycles")}))


def _inputs(sizing: Sizing) -> Sheet:
    if len(sizing.inputs) == 1:
        return
    rows = [
        (
            each.name,
            "stuck" if each.cycles_before is None else each.cycles_before,
            "stuck" if each.cycles is None else each.cycles,
            each.cycles_unbounded,
            each.limit_cycles,
        )
        for each in sizing.inputs
    ]
    yield Title("The inputs", ", the depths serve all of them")
    columns = ("input", "as wired", "cycles", "unlimited channels", "goal at most")
    yield Rows(columns, rows, right=frozenset({1, 2}))


def _held_out(sizing: Sizing) -> Sheet:
    if not sizing.held_out:
        return
    violated = len(sizing.violated)
    note = f", goal missed by {violated:,} of {len(sizing.held_out):,}"
    rows = [
        (
            each.name,
            "stuck" if each.cycles is None else each.cycles,
            each.limit_cycles,
            not each.violated,
        )
        for each in sizing.held_out
    ]
    yield Title("Inputs held out", note)
    columns = ("input", "cycles", "goal at most", "keeps the goal")
    yield Rows(columns, rows, right=frozenset({1}))
