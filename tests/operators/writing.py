"""Streams as text: in ``0 1|S1 2|S2`` a stop follows its value.

``-1|S2`` is a bare stop of level 2 for an empty dimension 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fabric import Program, Report, Stream, StreamType, simulate
from fabric.extend import Element, Empty, ValueType
from tests.operators.driving import NUMBER, Collect, Emit

Input = tuple[str, Sequence[int]] | tuple[str, Sequence[int], ValueType, Callable[[str], Any]]
"""A stream as text, and its shape. Other values than numbers need a type and a parser."""


def read(text: str, make: Callable[[str], Any] = int) -> list[Element]:
    elements: list[Element] = []
    for word in text.split():
        value, _, stop = word.partition("|S")
        level = int(stop or 0)
        if value.startswith("-"):
            elements.append((Empty(int(value[1:])), level))
        else:
            elements.append((make(value), level))
    return elements


def write(elements: Sequence[Element], show: Callable[[Any], str] = str) -> str:
    return " ".join(
        (f"-{value.dimension}" if isinstance(value, Empty) else show(value))
        + (f"|S{stop}" if stop else "")
        for value, stop in elements
    )


def run(
    wire: Callable[..., Stream | Sequence[Stream]],
    *inputs: Input,
    show: Callable[[Any], str] = str,
    mode: str = "functional",
) -> tuple[Report, list[str]]:
    program, ends = wired(wire, *inputs)
    report = simulate(program, mode=mode)
    return report, [write(elements, show) for elements in ends]


def wired(
    wire: Callable[..., Stream | Sequence[Stream]], *inputs: Input
) -> tuple[Program, list[list[Element]]]:
    ends: list[list[Element]] = []
    with Program("text", channel_depth=1000) as program:
        streams = []
        for each in inputs:
            text, shape, value, make = each if len(each) == 4 else (*each, NUMBER, int)
            streams.append(Emit(StreamType(tuple(shape), value), read(text, make))())
        outputs = wire(*streams)
        for output in (outputs,) if isinstance(outputs, Stream) else outputs:
            ends.append([])
            Collect(ends[-1])(output)
    return program, ends
