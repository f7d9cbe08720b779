"""Runs a program in both engines and compares reports, texts, logs and states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest import mock

from fabric import Program, Tile
from fabric.runs import simulation
from fabric.runs.execution import Execution
from fabric.timing.compiled.region import Region
from fabric.timing.state.run_state import RunState
from tests.outcomes import outcome_of

Engine = Literal["compiled", "tasks"]


class EngineRun(NamedTuple):
    outcome: dict[str, Any]
    state: RunState
    ran_ahead: bool
    compiled: int
    gave_up: bool


def run(build: Callable[[], Program], engine: Engine, folder: Path, **settings: Any) -> EngineRun:
    runs: list[Execution] = []

    def execution(*arguments: Any, **named: Any) -> Execution:
        runs.append(Execution(*arguments, **named))
        return runs[-1]

    gave_up = []
    with mock.patch.object(simulation, "Execution", execution), _regions() as regions:
        outcome = outcome_of(build(), folder, mode="timing", engine=engine, **settings)
        gave_up = [region for region in regions if region.gave_up]
    region = runs[0].machine.region
    compiled = 0 if region is None or region.gave_up else len(region.indices)
    if engine == "tasks":
        assert region is None
    return EngineRun(outcome, runs[0].state, runs[0].machine.ran_ahead, compiled, bool(gave_up))


def both(build: Callable[[], Program], folder: Path, **settings: Any) -> EngineRun:
    tasks = run(build, "tasks", folder, **settings)
    compiled = run(build, "compiled", folder, **settings)
    assert tasks.ran_ahead == compiled.ran_ahead
    assert tasks.ran_ahead or tasks.state == compiled.state
    assert plain(tasks.outcome) == plain(compiled.outcome)
    return compiled


def described(elements: Iterable[Any]) -> list[object]:
    return [(_value(value), stop) for value, stop in elements]


def _value(value: object) -> object:
    if isinstance(value, Tile):
        data = None if value.data is None else value.data.tolist()
        return (repr(value), value.valid_rows, value.valid_cols, value.in_memory, data)
    if type(value) is tuple:
        return tuple(map(_value, value))
    return type(value).__name__, value


def plain(outcome: dict[str, Any]) -> dict[str, Any]:
    return {name: re.sub(r"0x[0-9a-f]+", "0x", repr(value)) for name, value in outcome.items()}


@contextmanager
def _regions() -> Iterator[list[Region]]:
    regions: list[Region] = []
    make = Region.__init__

    def keep(region: Region, *arguments: Any, **named: Any) -> None:
        make(region, *arguments, **named)
        regions.append(region)

    with mock.patch.object(Region, "__init__", keep):
        yield regions
