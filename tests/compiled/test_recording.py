from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program
from fabric.extend import Ports
from operators import Flatten, Metadata, Promote, Repeat
from tests.compiled.both import both, described
from tests.compiled.turning import GIVE_UP, Turning, numbers
from tests.operators.driving import Collect


@pytest.mark.parametrize("operator", GIVE_UP, ids=lambda each: getattr(each.does, "__name__", None))
def test_operator_that_cannot_be_recorded_is_a_task(operator: Turning, tmp_path: Path) -> None:
    found = both(lambda: numbers(operator), tmp_path)

    assert found.gave_up


@dataclass(frozen=True)
class Late(Turning):
    conducted = turns = carries_numbers = True

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        while (element := await source.receive()) is not None:
            await source.peek()
            await sink.send(element)
            ports.turn()


@dataclass(frozen=True)
class Hoarding(Turning):
    conducted = turns = carries_numbers = True

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        kept = await source.receive()
        while kept is not None:
            ports.turn(kept)
            element = await source.receive()
            await sink.send(kept)
            kept = element


@pytest.mark.parametrize("kind", [Late, Hoarding])
def test_operator_that_uses_an_older_number_is_a_task(kind: type[Turning], tmp_path: Path) -> None:
    found = both(lambda: numbers(kind(None)), tmp_path)

    assert found.gave_up


def numbers_seen(operator: Promote | Turning, folder: Path) -> list[list[object]]:
    seen: list[list[object]] = []

    def build() -> Program:
        with Program("numbers", mode="timing") as program:
            for values in ([3, 1, 4, 1, 5], [7], [2**31, 0, 2**40, 2**31 - 1]):
                seen.append([])
                numbers = Flatten(0, 1)(Metadata(np.array(values))())
                Collect(seen[-1])(Repeat(2)(operator(numbers)))
        return program

    found = both(build, folder)
    assert found.compiled
    return [described(each) for each in seen]


@pytest.mark.parametrize("operator", [Promote(), Promote(0), Promote(1)])
def test_look_ahead_sends_each_number(operator: Promote, tmp_path: Path) -> None:
    seen = numbers_seen(operator, tmp_path)

    assert seen[:3] == seen[3:]
