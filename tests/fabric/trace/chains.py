from __future__ import annotations

from fabric import Program
from tests.deadlock.parts import Script


def chain(*steps: tuple[str, ...], elements: int, depth: int = 2) -> Program:
    with Program("chain", channel_depth=depth) as wired:
        (stream,) = Script(steps[0], rounds=elements, counts=(elements,), name="unit_0")()
        for number, each in enumerate(steps[1:-1], start=1):
            (stream,) = Script(each, counts=(elements,), name=f"unit_{number}")(stream)
        Script(steps[-1], counts=(), name=f"unit_{len(steps) - 1}")(stream)
    return wired
