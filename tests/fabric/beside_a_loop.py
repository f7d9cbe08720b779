"""A program that never ends, with a loop that never begins."""

from __future__ import annotations

from fabric import Feedback, Program, StreamType
from fabric.extend import BoolType
from tests.fabric.small_program import Count, Relay, Total


def build() -> Program:
    with Program("beside") as program:
        loop = Feedback(StreamType((1,), BoolType()))
        loop.connect(Relay()(loop))
        Total("none")(Count(10**12, 10)())
    return program
