"""What a run of a server came to: times of requests, tokens a second, what is kept of a promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.explore.serving.served import Served
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described
from fabric.messages.telling.errors import ConfigurationError, FabricError
from fabric.messages.telling.plain import JsonObject
from fabric.messages.telling.sheet import ShownAsTables

__all__ = ["Measures", "ServiceLevel", "Spread", "measured"]

Seconds: TypeAlias = Annotated[float, Bounds(0, 10**9)]


@dataclass(frozen=True, kw_only=True)
class ServiceLevel(Described):
    """What users were promised. A request keeps it if it keeps every limit that is stated.

    Attributes:
        time_to_first_token_seconds: at most.
        time_per_token_seconds: at most, from the first token to the last, on the average.
        latency_seconds: at most.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    time_to_first_token_seconds: Seconds | None = None
    time_per_token_seconds: Seconds | None = None
    latency_seconds: Seconds | None = None


@dataclass(frozen=True)
class Spread:
    """How a time is spread over requests; all None where no request has it.

    Attributes:
        mean, median, p90, p95, p99: in seconds; percentiles between two requests are interpolated.
    """

    mean: float | None
    median: float | None
    p90: float | None
    p95: float | None
    p99: float | None

    @staticmethod
    def of(seconds: NDArray[np.float64]) -> Spread:
        """Return the spread of times."""
        if not len(seconds):
            return Spread(None, None, None, None, None)
        points = np.percentile(seconds, [50, 90, 95, 99])
        return Spread(float(seconds.mean()), *(float(each) for each in points))


@dataclass(frozen=True, repr=False)
class Measures(ShownAsTables):
    """The results of a run of a server.

    Attributes:
        requests: that came.
        completed: that have their last token.
        offered_per_second: requests that came a second; None where all came at one time.
        duration_seconds: from the first arrival to the last token.
        time_to_first_token: from a request's arrival.
        time_per_token: from a request's first token to its last, by the tokens after the first;
            of requests with at least two.
        latency: from a request's arrival to its last token.
        output_tokens_per_second, prompt_tokens_per_second, requests_per_second: of requests that
            completed, over the duration.
        goodput_per_second: requests that completed and kept the service level; None without one.
        kept: the part of all requests that kept it; None without one.
        joules_per_token: of all steps, by the tokens of outputs; None where not known.
        preemptions: how often a request was put back.
        steps: of all replicas; those that step together count once.
        mean_running: requests worked on, over the time that steps took.
        most_blocks: of cache, of the replicas that step together.
        interrupted: somebody stopped it.
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
    interrupted: bool

    def as_json(self) -> JsonObject:
        """Return it as ``serve --json`` prints it."""
        return {
            name: dict(vars(value)) if isinstance(value, Spread) else value
            for name, value in vars(self).items()
        }


def measured(served: Served, level: ServiceLevel | None = None) -> Measures:
    """Return the results of a run."""
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
        interrupted=served.interrupted,
    )


def _kept(
    level: ServiceLevel,
    to_first: NDArray[np.float64],
    latency: NDArray[np.float64],
    generating: NDArray[np.float64],
    outputs: NDArray[np.int64],
) -> int:
    """Return how many requests kept the service level."""
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
