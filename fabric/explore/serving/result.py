"""Result of a serving question: a run for each design and load, tables and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from fabric.display.parts import Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.explore.serving.question import Serving
from fabric.explore.serving.served import Measures, Served
from fabric.explore.serving.server import Sampled
from fabric.messages.text import JsonObject, counted, visible

_PERIODS: Final = 120
"""Number of periods of a timeline."""

_LONG_SECONDS: Final = 100

_KNEE_FACTOR: Final = 2.0
"""The largest mean wait at the knee, in multiples of the wait at the least load."""

_LEGEND: Final = (
    "Means and 99th percentiles: time to the first token, per token, of a whole request."
)
_KEPT: Final = " kept/s: requests that meet the service level."
_PREFIXES: Final = (1.0, ""), (1e-3, "m"), (1e-6, "\N{GREEK SMALL LETTER MU}")


@dataclass(frozen=True)
class Timeline:
    """A server's state over time, as means over equal periods that end at ``seconds``."""

    seconds: tuple[float, ...]
    running: tuple[float, ...]
    waiting: tuple[float, ...]
    blocks: tuple[float, ...]

    @staticmethod
    def of(served: Served) -> Timeline:
        """Return the timeline of a run; between steps, all values are 0."""
        ends = [each.start_seconds[-1] + each.seconds[-1] for each in served.steps if len(each)]
        if not ends:
            return Timeline((), (), (), ())
        edges = np.linspace(0, max(ends), _PERIODS + 1)
        names = ("running", "waiting", "blocks")
        totals = np.zeros((len(names), _PERIODS))
        for steps in served.steps:
            start, seconds = np.array(steps.start_seconds), np.array(steps.seconds)
            if not len(start):
                continue
            # The integral of each value up to each edge; a value is constant during a step.
            knots = np.stack([start, start + seconds], axis=1).ravel()
            for row, name in enumerate(names):
                amounts = np.array(getattr(steps, name)) * seconds
                before = np.concatenate([[0.0], np.cumsum(amounts)])
                integral = np.stack([before[:-1], before[1:]], axis=1).ravel()
                totals[row] += np.diff(np.interp(edges, knots, integral)) / np.diff(edges)
        rounded = (tuple(float(f"{each:.6g}") for each in row) for row in totals)
        return Timeline(tuple(float(f"{each:.6g}") for each in edges[1:]), *rounded)


@dataclass(frozen=True)
class Run:
    """A design at a load.

    Attributes:
        rate: requests a second; None for the arrival times of the table.
        outside: number of lookups outside of tables of step costs.
        sampled: steps that were also simulated exactly.
    """

    design: str
    rate: float | None
    measures: Measures
    timeline: Timeline
    outside: int = 0
    sampled: tuple[Sampled, ...] = ()


@dataclass(frozen=True, repr=False)
class ServingResult(Result):
    """The result of a serving question.

    Attributes:
        runs: ordered by design and load.
        notes: sentences on the step costs of each design.
        resumed: number of runs from earlier sessions.
        interrupted: whether runs are missing or incomplete.
    """

    serving: Serving
    runs: tuple[Run, ...]
    notes: Mapping[str, Sequence[str]]
    resumed: int = 0
    interrupted: bool = False

    def of(self, design: str) -> list[Run]:
        complete = (run for run in self.runs if not run.measures.interrupted)
        return [run for run in complete if run.design == design]

    def knee(self, design: str) -> float | None:
        """Return the last load before the mean time to first token exceeds twice the least load's.

        At greater loads requests wait for each other. None if no load exceeds this limit.
        """
        runs = [each for each in self.of(design) if each.rate is not None]
        idle = runs[0].measures.time_to_first_token.mean if runs else None
        knee = None
        for each in runs:
            mean = each.measures.time_to_first_token.mean
            if idle is None or mean is None or mean > _KNEE_FACTOR * idle:
                return knee
            knee = each.rate
        return None

    def quality_notes(self, design: str) -> list[str]:
        runs = self.of(design)
        outside = sum(each.outside for each in runs)
        sampled = [one for each in runs for one in each.sampled]
        sentences = []
        if outside:
            sentences.append(
                f"{counted(outside, 'lookup')} outside of a table used the value at its edge"
            )
        if sampled:
            off = [each.percent_off for each in sampled]
            sentences.append(
                f"in {counted(len(off), 'step')} simulated exactly, the interpolated time was off "
                f"by {np.mean(np.abs(off)):.1f} % on average ({np.mean(off):+.1f} % with its "
                f"sign), {max(map(abs, off)):.1f} % at most"
            )
        return sentences

    def server_notes(self) -> list[str]:
        if self.serving.server.num_blocks is not None:
            return []
        return ["num_blocks is not set: the cache has no limit and never delays a request"]

    def as_json(self) -> JsonObject:
        """Return the object that ``serve --json`` prints."""
        return {
            "serving": self.serving.name,
            "question": self.serving.question,
            "status": "interrupted" if self.interrupted else "completed",
            "error": None,
            "notes": self.server_notes(),
            "designs": [
                {
                    "design": design,
                    "knee_per_second": self.knee(design),
                    "notes": [*self.notes.get(design, ()), *self.quality_notes(design)],
                    "runs": [
                        {
                            "rate_per_second": each.rate,
                            **each.measures.as_json(),
                            "cost": {
                                "outside": each.outside,
                                "sampled": list(map(asdict, each.sampled)),
                            },
                        }
                        for each in self.runs
                        if each.design == design
                    ],
                }
                for design in self.serving.designs
            ],
        }

    def sheet(self) -> Sheet:
        serving = self.serving
        question = f"  {visible(serving.question)}" if serving.question else ""
        yield line((visible(serving.name), "bold"), question)
        yield line(visible(answer(self)))
        for each in notes(self):
            yield line(visible(each))
        yield from self.runs_sheet()

    def runs_sheet(self) -> Sheet:
        """Yield a row for each run, with means and 99th percentiles."""
        if self.runs:
            yield Title("Runs")
            yield _table_of_runs(self)
            promised = any(each.measures.kept is not None for each in self.runs)
            yield line((_LEGEND + _KEPT * promised, "dim"))


def answer(result: ServingResult) -> str:
    sentences = []
    for design in result.serving.designs:
        runs = result.of(design)
        if not runs:
            continue
        last, knee = runs[-1].measures, result.knee(design)
        name = f"{design}: " if design else ""
        rate = last.output_tokens_per_second
        speed = "" if rate is None else f"{rate:,.0f} tokens/s"
        at = "" if runs[-1].rate is None else f" at {runs[-1].rate:,g} requests/s"
        bend = "" if knee is None else f"; the knee is at {knee:,g} requests/s"
        if knee is None and len(runs) > 1 and last.time_to_first_token.mean is not None and at:
            bend = "; no knee among these loads"
        sentences.append(f"{name}{speed}{at}{bend}")
    return ". ".join(sentences) + "." if sentences else "No run is complete."


def notes(result: ServingResult) -> list[str]:
    sentences = []
    if result.interrupted:
        complete = sum(len(result.of(each)) for each in result.serving.designs)
        runs = counted(len(result.serving.designs) * len(result.serving.loads), "run")
        verb = "is" if complete == 1 else "are"
        sentences.append(
            f"Interrupted: {complete} of {runs} {verb} complete; the same command resumes there."
        )
    sentences += [f"{each}." for each in result.server_notes()]
    for design in result.serving.designs:
        prefix = f"{design}: " if design else ""
        sentences += [f"{prefix}{each}." for each in result.notes.get(design, ())]
        sentences += [f"{prefix}{each}." for each in result.quality_notes(design)]
    return sentences


_TIMES_SHOWN: Final = (
    ("first", "time_to_first_token"),
    ("a token", "time_per_token"),
    ("all", "latency"),
)


def prefixed(values: Iterable[float | None], most: float = 1.0) -> tuple[float, str]:
    """Return factor and prefix of the largest unit, up to ``most``, that a value reaches."""
    largest = max((each for each in values if each), default=most)
    units = [each for each in _PREFIXES if each[0] <= most]
    return next((each for each in units if each[0] <= largest), units[-1])


def time_unit(seconds: Iterable[float | None]) -> tuple[float, str]:
    """Return the unit of times, as a factor in seconds and its symbol.

    It is s if a time is at least 100 s, μs if all times are below 1 ms, and otherwise ms.
    """
    times = [time for time in seconds if time]
    scale, prefix = prefixed(times, most=1.0 if max(times, default=0) >= _LONG_SECONDS else 1e-3)
    return scale, f"{prefix}s"


def _table_of_runs(result: ServingResult) -> Rows:
    runs, measures = result.runs, [each.measures for each in result.runs]
    partial = any(each.completed < each.requests for each in measures)
    columns: list[tuple[str, Sequence[object]]] = [
        ("design", [visible(each.design) or None for each in runs]),
        ("load/s", list(map(load_text, runs))),
        ("done", [each.completed if partial else None for each in measures]),
    ]
    for title, name in _TIMES_SHOWN:
        means = [getattr(each, name).mean for each in measures]
        highs = [getattr(each, name).p99 for each in measures]
        unit, symbol = time_unit([*means, *highs])
        columns.append((f"{title}, {symbol}", _short(means, unit)))
        columns.append(("p99", _short(highs, unit)))
    joules = [each.joules_per_token for each in measures]
    unit, prefix = prefixed(joules)
    columns += [
        ("tokens/s", _short([each.output_tokens_per_second for each in measures])),
        ("kept/s", _short([each.goodput_per_second for each in measures])),
        (f"{prefix}J/token", _short(joules, unit)),
    ]
    filled = [each for each in columns if any(cell is not None for cell in each[1])]
    titles, cells = zip(*filled, strict=True)
    return Rows(titles, list(zip(*cells, strict=True)))


def load_text(run: Run, unit: str = "") -> str:
    """Return the rate of a run's requests and ``unit``, or ``all at one time``."""
    rate = run.measures.offered_per_second if run.rate is None else run.rate
    return "all at one time" if rate is None else f"{rate:,g}{unit}"


def _short(values: Iterable[float | None], unit: float = 1.0) -> list[str | None]:
    amounts = [None if each is None else each / unit for each in values]
    # Three digits of 999.5 and above would be 1e+03.
    return [x if x is None else f"{x:,.3g}" if x < 999.5 else f"{x:,.0f}" for x in amounts]
