"""Serve requests with a server and its step costs, and measure latency and throughput."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.display.parts import Rows, Sheet, Title
from fabric.display.result import Result
from fabric.explore.serving.requests import Requests
from fabric.explore.serving.server import (
    Batch,
    ContinuousBatching,
    Price,
    Request,
    Scheduler,
    Server,
    StepCost,
)
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import JsonObject, counted
from fabric.messages.users_code import users_code

MakeScheduler: TypeAlias = Callable[[Server], Scheduler]

OnCompleted: TypeAlias = Callable[[int], object]
"""Called with the number of completed requests."""

_REPORT_EVERY: Final = 256
_SCHEDULER: Final = "the scheduler"
Seconds: TypeAlias = Annotated[float, Bounds(0, 10**9)]


class Steps:
    """Steps of replicas that step together, in arrays of equal length.

    Attributes:
        running, waiting: requests of all replicas once the step is scheduled.
        blocks: cache blocks that all replicas have allocated at this time.
    """

    def __init__(self) -> None:
        self.start_seconds: Final = array("d")
        self.seconds: Final = array("d")
        self.prefill_tokens: Final = array("q")
        self.decode_tokens: Final = array("q")
        self.running: Final = array("q")
        self.waiting: Final = array("q")
        self.blocks: Final = array("q")

    def __len__(self) -> int:
        return len(self.seconds)

    def add(
        self, start: float, cost: Price, batches: Sequence[Batch], schedulers: Sequence[Scheduler]
    ) -> None:
        self.start_seconds.append(start)
        self.seconds.append(cost.seconds)
        self.prefill_tokens.append(sum(each.prefill_tokens for each in batches))
        self.decode_tokens.append(sum(len(each.decodes) for each in batches))
        self.running.append(sum(each.running for each in schedulers))
        self.waiting.append(sum(each.waiting for each in schedulers))
        self.blocks.append(sum(each.blocks for each in schedulers))


@dataclass(frozen=True)
class Served:
    """Times at which requests received their tokens.

    Times are seconds since time 0 of the trace; NaN if an event did not happen.

    Attributes:
        taken_seconds: [requests], the time at which a replica queued the request, between steps.
        begun_seconds: [requests], the time at which the first step of its prompt was scheduled.
        first_seconds, last_seconds: [requests], the times of its first and last token.
        steps: steps of each group of replicas that step together.
        joules: energy of all steps; None if the energy of a step is unknown.
        interrupted: whether Ctrl-C stopped the run.
    """

    requests: Requests
    server: Server
    taken_seconds: NDArray[np.float64]
    begun_seconds: NDArray[np.float64]
    first_seconds: NDArray[np.float64]
    last_seconds: NDArray[np.float64]
    steps: tuple[Steps, ...]
    preemptions: int
    joules: float | None
    interrupted: bool

    @property
    def done(self) -> NDArray[np.bool_]:
        """[requests], whether a request has its last token."""
        return ~np.isnan(self.last_seconds)


def serve(
    requests: Requests,
    server: Server,
    cost: StepCost,
    scheduler: MakeScheduler = ContinuousBatching,
    on_completed: OnCompleted | None = None,
) -> Served:
    """Serve ``requests``; after Ctrl-C, return the times so far.

    Requests go to the replicas in turn. A replica queues the requests that have arrived whenever
    it schedules a step: at the end of the step before, or at its beginning with
    ``async_scheduling``. A step begins once it is scheduled and the step before has ended. Requests
    that are queued together stay in the order of the trace.

    ``scheduler`` makes the scheduler of a replica. ``on_completed`` is called every 256 completed
    requests of replicas that step together.

    Raises:
        ConfigurationError: a request is longer than a cache, a step costs no time, or a scheduler
            returns an empty step while requests are left and none will arrive.
        FabricError: a scheduler, a cost or ``on_completed`` raised an error.
    """
    server.check(requests)
    times = _Times(*(np.full(len(requests), math.nan) for _ in range(4)))
    every = range(server.replicas)
    together = [list(every)] if server.lockstep else [[each] for each in every]
    groups: list[_Group] = []
    interrupted = False
    try:
        for replicas in together:
            groups.append(_Group(requests, server, times, cost, replicas, scheduler, on_completed))
            groups[-1].run()
    except KeyboardInterrupt:
        interrupted = True
    joules = [each.joules for each in groups]
    return Served(
        requests,
        server,
        *times,
        steps=tuple([each.steps for each in groups]),
        preemptions=sum(each.preemptions for each in groups),
        joules=None if None in joules else math.fsum(each for each in joules if each is not None),
        interrupted=interrupted,
    )


class _Times(NamedTuple):
    taken: NDArray[np.float64]
    begun: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]


@dataclass(eq=False)
class _Group:
    """Replicas that step together."""

    requests: Requests
    server: Server
    times: _Times
    cost: StepCost
    replicas: Sequence[int]
    make_scheduler: MakeScheduler
    on_completed: OnCompleted | None
    steps: Steps = field(default_factory=Steps)
    joules: float | None = 0.0

    def __post_init__(self) -> None:
        with users_code(_SCHEDULER):
            self._schedulers = {each: self.make_scheduler(self.server) for each in self.replicas}
        numbers, replicas = range(len(self.requests)), self.server.replicas
        self._coming = [each for each in numbers if each % replicas in self._schedulers]
        self._arrivals: list[float] = self.requests.arrival_seconds.tolist()
        self._prompts: list[int] = self.requests.prompt_tokens.tolist()
        self._outputs: list[int] = self.requests.output_tokens.tolist()
        self._next = 0
        self._left = len(self._coming)

    @property
    def preemptions(self) -> int:
        return sum(each.preemptions for each in self._schedulers.values())

    def run(self) -> None:
        schedulers = list(self._schedulers.values())
        overlaps = self.server.async_scheduling
        now = free = 0.0  # now: a step is scheduled; free: the step before has ended
        under_way: list[Batch] | None = None
        while self._left:
            self._take(now)
            with users_code(_SCHEDULER):
                batches = [each.schedule() for each in schedulers]
            planned = None
            end = free
            if any(each.tokens for each in batches):
                planned = batches
                end = self._plan(now, max(now, free), batches, schedulers)
            # The step that ends next: with async_scheduling the running one, else the new one.
            ending, ends = (under_way, free) if overlaps else (planned, end)
            if ending is not None:
                now = ends
                self._end(ending, now, schedulers)
            elif planned is None:
                now = self._wait(now)
            under_way, free = planned if overlaps else None, end

    def _take(self, now: float) -> None:
        coming, replicas = self._coming, self.server.replicas
        while self._next < len(coming) and self._arrivals[coming[self._next]] <= now:
            number = coming[self._next]
            self._next += 1
            self.times.taken[number] = now
            request = Request(number, self._prompts[number], self._outputs[number])
            with users_code(_SCHEDULER):
                self._schedulers[number % replicas].add(request)

    def _plan(
        self, now: float, start: float, batches: list[Batch], schedulers: Sequence[Scheduler]
    ) -> float:
        with users_code("the cost of steps"):
            cost = self.cost.cost(batches)
        if not 0 < cost.seconds < math.inf:
            raise ConfigurationError(
                f"a step of {counted(sum(each.tokens for each in batches), 'token')} costs "
                f"{cost.seconds:g} s: expected above 0"
            )
        self.joules = (
            None if self.joules is None or cost.joules is None else self.joules + cost.joules
        )
        self.steps.add(start, cost, batches, schedulers)
        for batch in batches:
            for request in batch.begun:
                if math.isnan(self.times.begun[request.number]):
                    self.times.begun[request.number] = now
        return start + cost.seconds

    def _end(self, batches: list[Batch], now: float, schedulers: Sequence[Scheduler]) -> None:
        for batch, scheduler in zip(batches, schedulers, strict=True):
            for request in batch.firsts:
                self.times.first[request.number] = now
            for request in batch.lasts:
                self.times.last[request.number] = now
                with users_code(_SCHEDULER):
                    scheduler.finish(request)
                self._left -= 1
                if self.on_completed is not None and not self._left % _REPORT_EVERY:
                    with users_code("on_completed"):
                        self.on_completed(int((~np.isnan(self.times.last)).sum()))

    def _wait(self, now: float) -> float:
        if self._next == len(self._coming):
            left = sum(each.waiting + each.running for each in self._schedulers.values())
            raise ConfigurationError(
                f"a scheduler returned an empty step at {now:g} s, with "
                f"{counted(left, 'request')} left: expected a step with tokens"
            )
        return self._arrivals[self._coming[self._next]]


@dataclass(frozen=True, kw_only=True)
class ServiceLevel(Section):
    """Promised upper limits in seconds. A request meets the level if it meets every limit.

    Attributes:
        time_to_first_token_seconds: from arrival to first token.
        time_per_token_seconds: mean time between tokens, from the first to the last.
        latency_seconds: from arrival to last token.
    """

    time_to_first_token_seconds: Seconds | None = None
    time_per_token_seconds: Seconds | None = None
    latency_seconds: Seconds | None = None


@dataclass(frozen=True)
class Spread:
    """Statistics of a time in seconds; percentiles are interpolated, None without requests."""

    mean: float | None
    median: float | None
    p90: float | None
    p95: float | None
    p99: float | None

    @staticmethod
    def of(seconds: NDArray[np.float64]) -> Spread:
        if not len(seconds):
            return Spread(None, None, None, None, None)
        points = np.percentile(seconds, [50, 90, 95, 99])
        return Spread(float(seconds.mean()), *(float(each) for each in points))


@dataclass(frozen=True, repr=False)
class Measures(Result):
    """Measures of a run of a server.

    Attributes:
        completed: number of requests with their last token.
        offered_per_second: arrivals a second; None if all requests arrive at one time.
        duration_seconds: from the first arrival to the last token.
        time_to_first_token: from a request's arrival.
        time_per_token: mean time between a request's tokens, for requests with at least two.
        latency: from a request's arrival to its last token.
        output_tokens_per_second, prompt_tokens_per_second, requests_per_second: of completed
            requests, over the duration.
        goodput_per_second: completed requests a second that meet the service level; None without
            a level.
        kept: fraction of all requests that meet the service level; None without a level.
        joules_per_token: energy of all steps per output token; None if unknown.
        steps: number of steps; replicas that step together share a step.
        mean_running: running requests, averaged over the time of steps.
        most_blocks: maximum of the allocated cache blocks of replicas that step together.
        num_blocks: cache blocks of each replica; None without a limit.
        interrupted: whether Ctrl-C stopped the run.
    """

    requests: int
    completed: int
    offered_per_second: float | None
    duration_seconds: float | None
    time_to_first_token: Spread
    time_per_token: Spread
    latency: Spread
    output_tokens_per_second: float | None
    prompt_tokens_per_second: float | None
    requests_per_second: float | None
    goodput_per_second: float | None
    kept: float | None
    joules_per_token: float | None
    preemptions: int
    steps: int
    mean_running: float | None
    most_blocks: int
    num_blocks: int | None
    interrupted: bool

    def as_json(self) -> JsonObject:
        """Return the measures of one run, as ``serve --json`` prints them."""
        return {
            name: dict(vars(value)) if isinstance(value, Spread) else value
            for name, value in vars(self).items()
        }

    def sheet(self) -> Sheet:
        def short(value: float | None) -> str | None:
            return None if value is None else f"{value:,.4g}"

        yield Title("Requests", ", times in seconds")
        spreads = (
            ("to the first token", self.time_to_first_token),
            ("a token", self.time_per_token),
            ("all of a request", self.latency),
        )
        times = [(name, *map(short, vars(spread).values())) for name, spread in spreads]
        names = tuple(vars(self.latency))
        yield Rows(("", *names), times, right=frozenset(range(1, 1 + len(names))))
        rows = [
            (name.replace("_", " "), short(value) if isinstance(value, float) else value)
            for name, value in vars(self).items()
            if value is not None and not isinstance(value, Spread | bool)
        ]
        yield Title("In all", ", interrupted" if self.interrupted else "")
        yield Rows(("", ""), rows, right=frozenset({1}))


def measured(served: Served, level: ServiceLevel | None = None) -> Measures:
    """Return latencies and throughput of a run; ``level`` decides which requests are kept."""
    requests, done = served.requests, served.done
    arrivals, outputs = requests.arrival_seconds[done], requests.output_tokens[done]
    first, last = served.first_seconds[done], served.last_seconds[done]
    to_first, latency = first - arrivals, last - arrivals
    several = outputs > 1
    per_token = (last - first)[several] / (outputs[several] - 1)
    duration = float(last.max() - requests.arrival_seconds[0]) if len(last) else None
    kept = None
    if level is not None and level != ServiceLevel():
        kept = _kept(level, to_first, latency, last - first, outputs)
    generated = int(outputs.sum())
    joules = None if served.interrupted else served.joules
    busy = sum(sum(each.seconds) for each in served.steps)
    worked = sum(float(np.dot(each.seconds, each.running)) for each in served.steps)
    offered = requests.per_second
    return Measures(
        requests=len(requests),
        completed=int(done.sum()),
        offered_per_second=offered if np.isfinite(offered) else None,
        duration_seconds=duration,
        time_to_first_token=Spread.of(to_first),
        time_per_token=Spread.of(per_token),
        latency=Spread.of(latency),
        output_tokens_per_second=_rate(generated, duration),
        prompt_tokens_per_second=_rate(int(requests.prompt_tokens[done].sum()), duration),
        requests_per_second=_rate(int(done.sum()), duration),
        goodput_per_second=None if kept is None else _rate(kept, duration),
        kept=None if kept is None else kept / len(requests),
        joules_per_token=None if joules is None or not generated else joules / generated,
        preemptions=served.preemptions,
        steps=sum(map(len, served.steps)),
        mean_running=worked / busy if busy else None,
        most_blocks=max((max(each.blocks, default=0) for each in served.steps), default=0),
        num_blocks=served.server.num_blocks,
        interrupted=served.interrupted,
    )


def _kept(
    level: ServiceLevel,
    to_first: NDArray[np.float64],
    latency: NDArray[np.float64],
    generating: NDArray[np.float64],
    outputs: NDArray[np.int64],
) -> int:
    good = np.ones(len(outputs), bool)
    if level.time_to_first_token_seconds is not None:
        good &= to_first <= level.time_to_first_token_seconds
    if level.time_per_token_seconds is not None:
        good &= generating <= level.time_per_token_seconds * (outputs - 1)
    if level.latency_seconds is not None:
        good &= latency <= level.latency_seconds
    return int(good.sum())


def _rate(count: int, seconds: float | None) -> float | None:
    return count / seconds if seconds else None
