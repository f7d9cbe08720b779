"""A program under both engines, and all that is said of it."""

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
from tests.telling import told

__all__ = ["Engine", "Told", "both", "described", "plain", "run"]

Engine = Literal["compiled", "tasks"]


class Told(NamedTuple):
    """What a run says.

    Attributes:
        said: report, text and log.
        state: to which it came.
        ran_ahead: units were ahead of a failure, where the schedule had brought them.
        compiled: how many operators had no task; 0 where they went on as tasks.
        gave_up: they did.
    """

    said: dict[str, Any]
    state: RunState
    ran_ahead: bool
    compiled: int
    gave_up: bool


def run(build: Callable[[], Program], engine: Engine, folder: Path, **settings: Any) -> Told:
    """Run what ``build`` wires in timing mode."""
    runs: list[Execution] = []

    def execution(*arguments: Any, **named: Any) -> Execution:
        runs.append(Execution(*arguments, **named))
        return runs[-1]

    gave_up = []
    with mock.patch.object(simulation, "Execution", execution), _regions() as regions:
        said = told(build(), folder, mode="timing", engine=engine, **settings)
        gave_up = [region for region in regions if region.has_left]
    region = runs[0].machine.region
    compiled = 0 if region is None or region.has_left else len(region.indices)
    if engine == "tasks":
        assert not regions
    return Told(said, runs[0].state, runs[0].machine.ran_ahead, compiled, bool(gave_up))


def both(build: Callable[[], Program], folder: Path, **settings: Any) -> Told:
    """Run what ``build`` wires under both engines, which say the same; return what that is.

    The numbers of compiled operators are those of the compiled run.
    """
    tasks = run(build, "tasks", folder, **settings)
    compiled = run(build, "compiled", folder, **settings)
    assert tasks.ran_ahead == compiled.ran_ahead
    assert tasks.ran_ahead or tasks.state == compiled.state
    assert plain(tasks.said) == plain(compiled.said)
    return compiled


def described(elements: Iterable[Any]) -> list[object]:
    """Return all that is known of elements, as what can be compared."""
    return [(_value(value), stop) for value, stop in elements]


def _value(value: object) -> object:
    if isinstance(value, Tile):
        data = None if value.data is None else value.data.tolist()
        return (repr(value), value.valid_rows, value.valid_cols, value.in_memory, data)
    if type(value) is tuple:
        return tuple(map(_value, value))
    return type(value).__name__, value


def plain(said: dict[str, Any]) -> dict[str, Any]:
    """Return ``said`` without the folder of the run and the address of an object in a warning."""
    return {name: re.sub(r"0x[0-9a-f]+", "0x", repr(each)) for name, each in said.items()}


@contextmanager
def _regions() -> Iterator[list[Region]]:
    """Keep the regions that are made."""
    found: list[Region] = []
    made = Region.__init__

    def keep(region: Region, *arguments: Any, **named: Any) -> None:
        made(region, *arguments, **named)
        found.append(region)

    with mock.patch.object(Region, "__init__", keep):
        yield found
