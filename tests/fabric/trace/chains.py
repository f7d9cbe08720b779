"""Units in a row; golden texts name the lines of this file."""

from __future__ import annotations

from fabric import Program
from tests.deadlock.parts import Script

__all__ = ["chain"]


def chain(*steps: tuple[str, ...], elements: int, depth: int = 2) -> Program:
    """Return units in a row: the first sends, the last receives, each follows its steps."""
    with Program("chain", channel_depth=depth) as wired:
        (stream,) = Script(steps[0], rounds=elements, counts=(elements,), name="unit_0")()
        for number, each in enumerate(steps[1:-1], start=1):
            (stream,) = Script(each, counts=(elements,), name=f"unit_{number}")(stream)
        Script(steps[-1], counts=(), name=f"unit_{len(steps) - 1}")(stream)
    return wired
