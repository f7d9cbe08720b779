"""Random programs without a user's sources; most sizes are known before a run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from typing_extensions import override

import fabric.extend as ext
import operators as op
from fabric import Hardware, Hop, KnownBefore, Program, Report, Stream, lower_bounds, simulate
from fabric.graph.hardware.memory_models import ArbitratedBanksDescription, ArbitratedDescription
from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.elaborate import elaborate
from tests import definitions
from tests.operators.random_programs import Meant, Random
from tests.programs.loading import REGISTERED

_DTYPE = "float32"


@dataclass(frozen=True)
class Idle(op.RowSum):
    @override
    def cycles(self, unit: ext.ComputeUnit, *inputs: Any) -> int:
        return 0


_AREA = ext.AreaDescription(
    small_memory_mm2_per_kib=(0.5, 2),
    memory_mm2_per_kib=(0.25, 0.75),
    small_memory_bytes=300,
    slot_mm2_per_byte=(0.125, 0.3),
    float32_flop_mm2=(0.1, 0.7),
    bfloat16_flop_mm2=(0.05, 0.3),
)
"""A memory unit just above 300 bytes takes less area than one of 300 bytes."""


def drawn_hardware(choices: Any, memory: Memory | None = None) -> Hardware:
    drawn = choices.pick((_flat, *MEMORIES))
    on_wires = choices.pick((Hardware(), Hardware().of_wires(), REGISTERED))
    return replace(
        on_wires,
        hbm=(memory or drawn)(choices),
        on_chip=ext.OnChipDescription(bytes_per_cycle=choices.pick((64, 1, 8))),
        area=choices.pick((ext.AreaDescription(), _AREA)),
    )


def _flat(choices: Any) -> ext.OffChipDescription:
    return ext.FlatDescription(
        channels=choices.pick((32, 1, 2, 7)),
        request_bytes=choices.pick((64, 4, 32)),
        latency_cycles=choices.pick((2, 0, 9)),
        initiation_interval_cycles=choices.pick((2, 1, 5, 40)),
        startup_cycles=choices.pick((14, 0, 100)),
        requests_per_bundle=choices.pick((1, 2, 16)),
    )


def _banked(choices: Any) -> ext.OffChipDescription:
    columns = choices.pick((None, 0))
    return ext.BankedDescription(
        channels=choices.pick((32, 1, 2)),
        pseudo_channels=choices.pick((2, 1, 4)),
        request_bytes=choices.pick((64, 32, 128)),
        requests_per_bundle=choices.pick((1, 2, 16)),
        scheduler=choices.pick(("first ready", "first come")),
        refreshes=choices.maybe(),
        burst_cycles=choices.pick((None, 1, 9)),
        ccd_s_cycles=choices.pick((None, 1, 4)),
        cl_cycles=columns,
        cwl_cycles=columns,
        refi_cycles=choices.pick((None, 500)),
        prefetch_requests=choices.pick((0, 0, 3, 100)),
    )


def _fixed(choices: Any) -> ext.OffChipDescription:
    return ext.FixedDescription(
        request_bytes=choices.pick((64, 3)),
        latency_cycles=choices.pick((100, 0)),
        bytes_per_cycle=choices.pick((64, 1, 500)),
    )


def _arbitrated(choices: Any) -> ext.OffChipDescription:
    return ArbitratedDescription(
        interval_cycles=choices.pick((2, 1, 7)),
        latency_cycles=choices.pick((30, 1, 100)),
        **_ports(choices),
    )


def _arbitrated_banks(choices: Any) -> ext.OffChipDescription:
    return ArbitratedBanksDescription(window_requests=choices.pick((33, 1)), **_ports(choices))


def _ports(choices: Any) -> dict[str, Any]:
    in_flight = choices.pick((64, 1, 3))
    return {
        "request_bytes": choices.pick((512, 64, 4)),
        "tag_bytes": choices.pick((0, 4)),
        "reads_in_flight": in_flight,
        "answers": in_flight + choices.pick((64, 4)),
    }


Memory = Callable[[Any], ext.OffChipDescription]
MEMORIES: tuple[Memory, ...] = (_flat, _banked, _fixed, _arbitrated, _arbitrated_banks)


def drawn_options(built: Program, source: random.Random) -> dict[str, Any]:
    keys = [edge.key for edge in elaborate(built).edges]
    some = source.choice([(1000,), (1000,), (1, 2, 5, 1000)])
    longest = source.choice((1, 1, 3))
    return {
        "depths": {key: source.choice(some) for key in keys},
        "hops": {key: Hop(source.randint(1, longest), source.randint(1, longest)) for key in keys},
        "engine": source.choice(["compiled", "tasks"]),
    }


class Bounded(Random):
    @override
    def _source(self) -> None:
        choices = self._choices
        rows, cols = 1 + choices.below(4), 1 + choices.below(6)
        tensor = op.Tensor((rows, cols), dtype=_DTYPE)
        stream = op.LinearOffChipLoad(tensor, (1, 1))()
        self._live.append(Meant(stream, [[[0.0] * cols for _ in range(rows)]]))

    @override
    def _begin(self, of: Meant) -> Iterator[Meant]:
        steps: tuple[Callable[[Meant], Iterator[Meant]], ...] = (
            self._store,
            self._refer,
            self._merge,
            self._compute,
            self._reread,
            self._look_up,
            super()._begin,
        )
        yield from self._choices.pick(steps)(of)

    @override
    def _route(self, of: Meant) -> Iterator[Meant]:
        choices, program = self._choices, self.program
        rank = choices.below(of.dims)
        outer = of.stream.shape[: of.dims - rank]
        if of.dims > 4 or of.size > 150 or not all(isinstance(dim, int) for dim in outer):
            yield of
            return
        width = 1 + choices.below(3)
        hits = choices.below(width + 1)
        count = int(np.prod(outer))
        chosen = [
            sorted((each + choices.below(width)) % width for each in range(hits))
            for _ in range(count)
        ]
        chosen = [each if len(set(each)) == hits else list(range(hits)) for each in chosen]
        choice = np.array(chosen, np.int64).reshape(*outer, hits)
        made = op.Selectors(choice, width)()
        selectors = op.Flatten(len(outer) - 1, len(outer))(made)
        parts = op.Partition(width, rank, choices.below(4))(of.stream, selectors)
        for number, part in enumerate(parts):
            if isinstance(part.shape[0], Symbol) and choices.below(4):
                program.bind(part.shape[0], sum(number in each for each in chosen))
        if choices.maybe():
            program.bind(sum(part.shape[0] for part in parts), hits * count)
        if choices.maybe():
            for part in parts:
                op.Consumer()(part)
            yield of
            return
        doubled = [op.Map(op.Add(), flops_per_cycle=1)(part, part) for part in parts]
        sets = iter(chosen)
        tensor = definitions.at_depth(
            lambda part: [part] * len(next(sets)), of.dims - rank, of.tensor
        )
        yield Meant(op.Reassemble(rank, choices.below(3))(doubled, selectors), tensor)

    def _store(self, of: Meant) -> Iterator[Meant]:
        name = f"y{len(self.program.nodes)}"
        if self._choices.maybe() and all(isinstance(dim, int) for dim in of.stream.shape):
            places = op.Metadata(np.zeros(of.stream.shape, np.int64))()
            places = op.Flatten(of.dims - 1, of.dims)(places)
            stored = op.Tensor((2, 3), dtype=_DTYPE)
            done = op.RandomOffChipStore(name, stored, (1, 1))(places, of.stream)
            if self._choices.below(2):
                op.Consumer()(done)
        else:
            op.LinearOffChipStore(name)(of.stream)
        yield of

    def _refer(self, of: Meant) -> Iterator[Meant]:
        if of.dims > 4 or of.size > 100:
            yield of
            return
        count = 1 + self._choices.below(3)
        loaded = op.LinearOffChipLoad(op.Tensor((3, 4), dtype=_DTYPE), (1, 1), (count,))(of.stream)
        yield Meant(loaded, definitions.repeat(count, of.dims, of.tensor))

    def _merge(self, of: Meant) -> Iterator[Meant]:
        other = op.Map(op.Add(), flops_per_cycle=1)(of.stream, of.stream)
        merged, source = op.EagerMerge(of.dims - 1)([of.stream, other])
        if self._choices.maybe():
            op.Consumer()(source)
        yield Meant(merged, [*of.tensor, *of.tensor])

    def _compute(self, of: Meant) -> Iterator[Meant]:
        function = self._choices.pick((op.RowSum(), Idle()))
        into = self._choices.maybe()
        yield Meant(op.Map(function, into, flops_per_cycle=1)(of.stream), of.tensor)

    def _reread(self, of: Meant) -> Iterator[Meant]:
        if not 2 <= of.dims <= 3 or of.size > 50:
            yield of
            return
        sums = op.Accum(op.Sum(), flops_per_cycle=1)(of.stream)
        read = op.Streamify()(op.Bufferize()(of.stream), sums)
        yield Meant(read, of.tensor)

    def _look_up(self, of: Meant) -> Iterator[Meant]:
        count = 1 + self._choices.below(6)
        numbers: Stream = op.Metadata(np.arange(count))()
        tensor = op.Tensor((2, 3), dtype=_DTYPE)
        yield of
        yield Meant(
            op.RandomOffChipLoad(tensor, (1, 1))(numbers), [list(itertools.repeat(0.0, count))]
        )


def compared(built: Program, **options: Any) -> tuple[KnownBefore, Report]:
    bounds = lower_bounds(built, options.get("depths") or {})
    report = simulate(built, **{"mode": "timing", **options})
    assert [] == list(beaten(bounds, report))
    return bounds, report


def beaten(bounds: KnownBefore, report: Report) -> Iterator[str]:
    if report.status != "completed":
        return
    said = report.as_json()
    for name, value in bounds.exact.items():
        if said[name] != value:
            yield f"{name} is {said[name]}: {value} were known"
    for name, least in {**bounds.at_least, **bounds.sized}.items():
        if not isinstance(said[name], Real):
            yield f"{name} is {said[name]}: a number was to be measured"
        elif said[name] < least:
            yield f"{name} is {said[name]}: at least {least} were known"


def load(rows: int = 4, cols: int = 32, tile: tuple[int, int] = (1, 32)) -> Stream:
    return op.LinearOffChipLoad(op.Tensor((rows, cols), dtype="float32"), tile)()


def cycles(bounds: KnownBefore) -> dict[str, int]:
    return {kind: bound.cycles for kind, bound in bounds.cycles.items()}
