"""Drives one module of hardware by a few tokens and records what it sends and when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

# Any: amaranth has no types.
from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.sim import Simulator

from operators.rtl import blocks
from operators.rtl.blocks import Unit

_TOKEN = re.compile(
    r"(?:-(?P<empty>\d+)|(?P<number>\d+)|(?P<rows>\d+)x(?P<cols>\d+)"
    r"(?:\((?P<valid_rows>\d+)x(?P<valid_cols>\d+)\))?|)"
    r"(?P<memory>m?)(?:#(?P<control>\d+))?(?P<stop>\.*)"
)


def tokens(text: str) -> list[dict[str, int]]:
    """Return the fields of each token of a stream, without fields that are 0.

    ``7`` is a number, ``2x3`` a tile, ``2x3m`` a tile in memory, ``2x3(1x3)`` a tile with one valid
    row, and ``-0.`` a bare stop with its empty dimension. ``#7`` sets ``control``. Each dot closes
    a dimension.
    """
    found = []
    for each in text.split():
        match = _TOKEN.fullmatch(each)
        assert match is not None, each
        said = match.groupdict()
        rows, cols = (1, 1) if said["number"] else (said["rows"], said["cols"])
        fields = {
            "level": len(said["stop"]),
            "bare": said["empty"] is not None,
            "empty": said["empty"] or 0,
            "rows": rows or 0,
            "cols": cols or 0,
            "valid_rows": said["valid_rows"] or rows or 0,
            "valid_cols": said["valid_cols"] or cols or 0,
            "in_memory": said["memory"] == "m",
            "control": said["number"] or said["control"] or 0,
        }
        found.append({name: int(value) for name, value in fields.items() if int(value)})
    return found


def shown(bits: int) -> dict[str, int]:
    found = {}
    for name, each in blocks.Token:
        value = bits >> each.offset & ((1 << each.width) - 1)
        if value:
            found[name] = value
    return found


@dataclass
class Driven:
    sent: list[list[dict[str, int]]]
    sent_cycles: list[list[int]]
    taken_cycles: list[list[int]]
    asked_cycles: list[int] = field(default_factory=list)
    told: int = 0
    fault: bool = False
    done_cycle: int = -1


class _Outside:
    def __init__(
        self,
        unit: Unit,
        inputs: Sequence[Sequence[int]],
        given: Sequence[int],
        latencies: Sequence[int],
        random: Random | None,
    ) -> None:
        self.unit, self.random = unit, random
        self.waiting = [list(each) for each in inputs]
        self.held: list[list[int]] = [[] for _ in inputs]
        self.ended = [False] * len(inputs)
        self.used = [0] * len(unit.outputs)
        self.depth = [1 if random is None else random.randint(1, 2) for _ in unit.outputs]
        self.given, self.latencies = list(given), list(latencies)
        self.left = 0
        self.found = Driven(
            [[] for _ in unit.outputs],
            [[] for _ in unit.outputs],
            [[] for _ in inputs],
        )

    def begin(self) -> bool:
        random = self.random
        for port, waiting in enumerate(self.waiting):
            if random is None or random.random() < 0.5:
                if waiting:
                    self.held[port].append(waiting.pop(0))
                    self.ended[port] = not waiting and (random is None or random.random() < 0.5)
                else:
                    self.ended[port] = True
        for port, used in enumerate(self.used):
            if used and (random is None or random.random() < 0.4):
                self.used[port] -= 1
        answers = self.left == 1
        self.left = max(0, self.left - 1)
        return answers

    def asked(self, cycle: int) -> bool:
        assert not self.left
        self.found.asked_cycles.append(cycle)
        self.left = self.latencies.pop(0)
        return not self.left

    def ports(self, *, answers: bool) -> Iterator[tuple[Any, int]]:
        for port, each in enumerate(self.unit.inputs):
            held, ended = self.held[port], self.ended[port]
            yield each.valid, bool(held)
            yield each.token.as_value(), held[0] if held else 0
            yield each.end, ended
            yield each.final, ended and len(held) == 1
        for port, output in enumerate(self.unit.outputs):
            yield output.ready, self.used[port] < self.depth[port]
        if self.unit.given:
            token, _, *ends = self.unit.given
            yield token.as_value(), self.given[0] if self.given else 0
            yield from zip(ends, (bool(self.given), len(self.given) == 1), strict=False)
        if self.unit.off_chip:
            yield self.unit.answer, answers

    def end(self, cycle: int, said: dict[str, int]) -> None:
        found = self.found
        assert found.done_cycle < 0 or said["done"]
        for port, held in enumerate(self.held):
            if said[f"in{port}_take"]:
                assert held, "nothing is there to be taken"
                held.pop(0)
                found.taken_cycles[port].append(cycle)
        for port, sent in enumerate(found.sent):
            if said[f"out{port}_valid"]:
                assert self.used[port] < self.depth[port], "there is no credit"
                assert found.done_cycle < 0
                self.used[port] += 1
                sent.append(shown(said[f"out{port}_token"]))
                found.sent_cycles[port].append(cycle)
        found.fault |= bool(said["fault"])
        if said.get("given_next"):
            self.given.pop(0)
            found.told += 1
        if said["done"] and found.done_cycle < 0:
            found.done_cycle = cycle


def driven(
    unit: Unit,
    inputs: Sequence[Sequence[dict[str, int]]],
    parameters: Mapping[str, int],
    *,
    seeds: Sequence[int | None] = (None,),
    given: Sequence[dict[str, int]] = (),
    latencies: Sequence[int] = (),
    most: int = 400,
) -> list[Driven]:
    runs = [
        _Outside(
            unit,
            [[blocks.packed(**each) for each in stream] for stream in inputs],
            [blocks.packed(**each) for each in given],
            latencies,
            None if seed is None else Random(seed),
        )
        for seed in seeds
    ]
    into, out = [port for port, _ in runs[0].ports(answers=False)], _out_of(unit)
    stimulus, said = Signal(sum(map(len, into)) or 1), Signal(sum(map(len, out)))
    m = _tied(unit, parameters)
    m.d.comb += [Cat(*into).eq(stimulus), said.eq(Cat(*out))]
    left = list(runs)

    async def drive(context: Any) -> None:
        outside = left.pop(0)

        def settle(*, answers: bool) -> dict[str, int]:
            bits = at = 0
            for port, value in outside.ports(answers=answers):
                bits |= int(value) << at
                at += len(port)
            context.set(stimulus, bits)
            bits, found = context.get(said), {}
            for each in out:
                found[each.name] = bits & ((1 << len(each)) - 1)
                bits >>= len(each)
            return found

        for cycle in range(most):
            found = settle(answers=outside.begin())
            if found.get("request") and outside.asked(cycle):
                found = settle(answers=True)
            outside.end(cycle, found)
            if 0 <= outside.found.done_cycle < cycle - 3:
                return
            await context.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    while left:
        if len(left) < len(runs):
            simulator.reset()
        simulator.run()
    return [each.found for each in runs]


def _tied(unit: Unit, parameters: Mapping[str, int]) -> Any:
    m, beats = Module(), Signal()
    m.submodules.unit = unit.m
    m.d.sync += beats.eq(~beats)
    assert parameters.keys() <= unit.parameters.keys(), unit.parameters
    for name, port in unit.parameters.items():
        m.d.comb += port.eq(parameters.get(name, 0))
    return m


def _out_of(unit: Unit) -> list[Any]:
    found = [each.take for each in unit.inputs]
    for each in unit.outputs:
        found += [each.valid, each.token.as_value()]
    found += [unit.done, unit.fault, *([unit.given[1]] if unit.given else [])]
    return [*found, unit.request] if unit.off_chip else found
