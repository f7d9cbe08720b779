"""Drive a question of serving: a study of designs at loads."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from fabric.explore.serving.measured_costs import LayerTables
from fabric.explore.serving.question import Serving, scheduler_of
from fabric.explore.serving.result import Run, ServingResult, Timeline
from fabric.explore.serving.run_costs import (
    FabricCost,
    FabricDescription,
    Grid,
    Layer,
    LayerRuns,
    LayerStep,
)
from fabric.explore.serving.served import Measures, measured, serve
from fabric.explore.study.driver import OnProgress, conduct
from fabric.explore.study.outcome import Before, Outcome, Point
from fabric.explore.study.session import BaseStore
from fabric.explore.study.space import Setting, grid
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from fabric.explore.study.study import Study
from fabric.explore.study.workers import Workers
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import open_given
from fabric.messages.text import JsonObject


@dataclass(frozen=True)
class ServingQuestion:
    """Serves requests with a ``design`` at a ``rate``; ``grids`` has each design's layers."""

    serving: Serving
    grids: Mapping[str, Grid]

    def identity(self, setting: Setting) -> str:
        serving, design = self.serving, str(setting["design"])
        layers = [
            [*at, each.cycles, each.joules] for at, each in self.grids.get(design, {}).items()
        ]
        rates = () if setting["rate"] is None else (float(setting["rate"]),)
        file, _, name = (serving.scheduler or "").rpartition(":")
        requests = replace(serving.requests, rates=rates)
        described = serving.designs[design], requests, serving.server, serving.level
        inputs = [
            layers,
            [name, _content(Path(file)) if file else ""],
            *({key: _content(value) for key, value in vars(each).items()} for each in described),
        ]
        return hashlib.sha256(json.dumps(inputs, default=str).encode()).hexdigest()

    def bounds(self, point: Point) -> Before:
        return point.bounds({})

    def run(self, point: Point) -> Outcome:
        """Serve the requests; the outcome has the fields of ``Measures``, as in ``latency.p99``."""
        serving, cost = self.serving, self.cost(str(point.setting["design"]))
        rate = point.setting["rate"]
        assert rate is None or isinstance(rate, int | float)
        requests = serving.requests.at(serving.requests.read(), rate)
        served = serve(requests, serving.server, cost, scheduler_of(serving.scheduler))
        if served.interrupted:
            raise KeyboardInterrupt
        measures = measured(served, serving.level).as_json()
        numbers: JsonObject = {}
        for name, value in measures.items():
            spread = value if isinstance(value, dict) else {}
            numbers |= {f"{name}.{each}": spread[each] for each in spread} or {name: value}
        steps = [asdict(each) for each in cost.sampled()] if isinstance(cost, FabricCost) else []
        run = {
            "measures": measures,
            "timeline": asdict(Timeline.of(served)),
            "outside": cost.taken_outside(),
            "steps": steps,
        }
        return point.outcome(numbers=numbers | {"run": run})

    def cost(self, design: str) -> LayerTables | FabricCost:
        described = self.serving.designs[design]
        if isinstance(described, FabricDescription):
            return FabricCost(described, self.grids[design])
        return LayerTables(described)


class _Served(msgspec.Struct, frozen=True):
    measures: Measures
    timeline: Timeline
    outside: int
    steps: list[LayerStep]


def conduct_serving(
    serving: Serving,
    workers: Workers,
    folder: Path | None = None,
    on_progress: OnProgress = lambda _: None,
    steps_folder: Path | None = None,
) -> ServingResult:
    """Serve the requests with every design at every load; after Ctrl-C, return the runs so far.

    ``folder``: keeps the runs, in ``study.db``. ``steps_folder``: keeps the simulated steps, in
    ``study.db``, and may be shared by several questions; by default ``folder``.

    Raises:
        ConfigurationError: the description is wrong, or a run failed.
    """
    requests = serving.requests.read()
    serving.server.check(requests)
    for rate in serving.loads:
        serving.requests.at(requests, rate)
    scheduler_of(serving.scheduler)
    result = ServingResult(serving, (), {}, interrupted=True)
    with ExitStack() as stack:
        place = steps_folder or folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for each in (place, folder or place):
            each.mkdir(parents=True, exist_ok=True)
        layer_runs = {
            name: LayerRuns(each, f"{serving.name} {name}".strip(), place, workers, on_progress)
            for name, each in serving.designs.items()
            if isinstance(each, FabricDescription)
        }
        try:
            grids = {each: of.grid(requests, serving.server) for each, of in layer_runs.items()}
            question = ServingQuestion(serving, grids)
            costs = {each: question.cost(each) for each in serving.designs}
            notes = {each: tuple(cost.notes()) for each, cost in costs.items()}
            result = replace(result, notes=notes)
            study = Study(
                asks=question,
                space=grid(design=list(serving.designs), rate=serving.loads),
                name=serving.name or "serving",
            )
            store = BaseStore() if folder is None else Store(study, file_url(folder / "study.db"))
            answers = conduct(study, workers, store, on_progress)
            runs = [_run(serving, each) for each in answers.outcomes]
            result = replace(result, runs=tuple(run for run, _ in runs), resumed=answers.resumed)
            if not answers.interrupted:
                exact = {
                    design: of.run(
                        each for run, steps in runs if run.design == design for each in steps
                    )
                    for design, of in layer_runs.items()
                }
                compared = [_with_samples(run, steps, costs, exact) for run, steps in runs]
                result = replace(result, runs=tuple(compared), interrupted=False)
        except KeyboardInterrupt:
            pass
    return result


def _run(serving: Serving, outcome: Outcome) -> tuple[Run, list[LayerStep]]:
    if outcome.status != "completed":
        raise ConfigurationError(str(outcome.reason))
    design, load = divmod(outcome.index, len(serving.loads))
    served = msgspec.convert(outcome.numbers["run"], _Served)
    name, rate = list(serving.designs)[design], serving.loads[load]
    return Run(name, rate, served.measures, served.timeline, served.outside), served.steps


def _with_samples(
    run: Run,
    steps: Sequence[LayerStep],
    costs: Mapping[str, LayerTables | FabricCost],
    exact: Mapping[str, Mapping[LayerStep, Layer]],
) -> Run:
    cost = costs[run.design]
    if not isinstance(cost, FabricCost):
        return run
    sampled = tuple(cost.compared(each, exact[run.design][each]) for each in steps)
    return replace(run, sampled=sampled)


def _content(value: object) -> object:
    if isinstance(value, Path):
        with open_given(value) as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    return dict(value) if isinstance(value, Mapping) else value
