"""Drive a question of serving: run each design at each load, and store complete runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from fabric.explore.serving.measured_costs import LayerTables, TableDescription
from fabric.explore.serving.question import Serving, scheduler_of
from fabric.explore.serving.requests import Requests
from fabric.explore.serving.result import Run, ServingResult, Timeline
from fabric.explore.serving.run_costs import FabricCost, FabricDescription
from fabric.explore.serving.served import MakeScheduler, measured, serve
from fabric.explore.serving.server import DesignCost, Quality
from fabric.explore.study.evaluation import engine_digest
from fabric.explore.study.session import StudySession
from fabric.explore.study.workers import Workers
from fabric.messages.files import open_given, write_whole
from fabric.messages.text import plain


class _Line(msgspec.Struct, frozen=True):
    identity: str
    run: Run


class RunStore:
    """Runs by their identity, in a file of JSON lines."""

    def __init__(self, file: Path | None) -> None:
        """Read the file, except damaged lines and lines of other versions.

        Without a file, runs are lost at the end.
        """
        self._file: Final = file
        self._runs: Final[dict[str, Run]] = {}
        if file is None or not file.exists():
            return
        with open_given(file) as opened:
            for line in opened.read().splitlines():
                with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
                    stored = msgspec.json.decode(line, type=_Line)
                    self._runs[stored.identity] = stored.run

    def get(self, identity: str) -> Run | None:
        """Return a stored run."""
        return self._runs.get(identity)

    def keep(self, identity: str, run: Run) -> None:
        """Store a run."""
        self._runs[identity] = run
        if self._file is None:
            return
        lines = [
            json.dumps({"identity": each, "run": plain(asdict(one))})
            for each, one in self._runs.items()
        ]
        write_whole(self._file, "\n".join(lines) + "\n")


def run_identity(serving: Serving, cost: str, requests: Requests, scheduler: str) -> str:
    """Return a digest of the inputs of a run."""
    inputs = [
        engine_digest(),
        cost,
        scheduler,
        *(plain(vars(each)) for each in (serving.server, serving.level)),
    ]
    digest = hashlib.sha256(json.dumps(inputs).encode())
    for column in (requests.arrival_seconds, requests.prompt_tokens, requests.output_tokens):
        digest.update(column.tobytes())
    return digest.hexdigest()


class Watching:
    """Callbacks on the progress of a question; the base ignores them."""

    def situations(self, session: StudySession) -> None:
        """Report progress of the simulated steps of a design."""

    def requests(self, design: str, rate: float | None, done: int, all_runs: int) -> None:
        """Report the completed requests ``done`` of ``all_runs``, the requests of all runs."""


def conduct_serving(
    serving: Serving,
    workers: Workers,
    folder: Path | None = None,
    watching: Watching | None = None,
    situations: Path | None = None,
) -> ServingResult:
    """Serve the requests with every design at every load.

    After Ctrl-C, return the runs so far, with incomplete runs marked.

    ``folder`` stores complete runs in ``runs.jsonl``. ``situations``, by default ``folder``, stores
    simulated steps in ``study.db``, which several questions may share.
    """
    watching = watching or Watching()
    requests = serving.requests.read()
    loads = [serving.requests.at(requests, rate) for rate in serving.loads]
    serving.server.check(requests)
    scheduler, digest = scheduler_of(serving.scheduler), _digest(serving.scheduler)
    all_runs = sum(map(len, loads)) * len(serving.designs)
    store = RunStore(None if folder is None else folder / "runs.jsonl")
    runs: list[Run] = []
    notes: dict[str, tuple[str, ...]] = {}
    resumed = done = 0
    interrupted = False
    with ExitStack() as stack:
        place = situations or folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for each in (place, folder or place):
            each.mkdir(parents=True, exist_ok=True)
        try:
            for design, described in serving.designs.items():
                cost = _cost(serving, design, described, requests, place, workers, watching)
                notes[design] = tuple(cost.notes())
                for rate, load in zip(serving.loads, loads, strict=True):
                    identity = run_identity(serving, cost.identity, load, digest)
                    run = store.get(identity)
                    if run is None:
                        progress = _Progress(watching, design, rate, done, all_runs)
                        run = _run(design, rate, load, serving, cost, scheduler, progress)
                        if run.measures.interrupted:
                            runs.append(run)
                            raise KeyboardInterrupt
                        store.keep(identity, run)
                    else:
                        resumed += 1
                        run = Run(design, rate, run.measures, run.timeline, run.quality)
                    runs.append(run)
                    done += len(load)
        except KeyboardInterrupt:
            interrupted = True
    return ServingResult(serving, tuple(runs), notes, resumed, interrupted)


class _Progress:
    def __init__(
        self, watching: Watching, design: str, rate: float | None, before: int, all_runs: int
    ) -> None:
        self._watching = watching
        self._design = design
        self._rate = rate
        self._before = before
        self._all = all_runs

    def __call__(self, done: int) -> None:
        self._watching.requests(self._design, self._rate, self._before + done, self._all)


def _cost(
    serving: Serving,
    design: str,
    described: TableDescription | FabricDescription,
    requests: Requests,
    folder: Path,
    workers: Workers,
    watching: Watching,
) -> DesignCost:
    if isinstance(described, TableDescription):
        return LayerTables(described)
    return FabricCost(
        described,
        f"{serving.name} {design}".strip(),
        requests,
        serving.server,
        folder,
        workers,
        watching.situations,
    )


def _run(
    design: str,
    rate: float | None,
    requests: Requests,
    serving: Serving,
    cost: DesignCost,
    scheduler: MakeScheduler,
    progress: _Progress,
) -> Run:
    served = serve(requests, serving.server, cost, scheduler, progress)
    measures = measured(served, serving.level)
    # An interrupted run is not stored, so its samples are not simulated.
    quality = Quality() if served.interrupted else cost.quality()
    return Run(design, rate, measures, Timeline.of(served), quality)


def _digest(scheduler: str | None) -> str:
    if scheduler is None:
        return ""
    file, _, name = scheduler.rpartition(":")
    return hashlib.sha256(Path(file).read_bytes() + name.encode()).hexdigest()
