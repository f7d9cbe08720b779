"""What is known before a run equals what the run measures, on every program."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Stream, StreamType, simulate
from fabric.extend import BoolType, Costs
from fabric.graph.values.expression import Symbol
from fabric.runs.comparison import Measured, compare, measured_sizes
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Partition, Selectors
from tests.fabric.scripted import Charge, Ticks
from tests.profiles import spread
from tests.symbolic.programs import wired

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("simplified_moe", {}),
    ("simplified_moe", {"tokens": 7, "experts": 5, "seed": 3}),
    ("swiglu", {}),
    ("moe", {"model": "tiny", "batch": 16, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 3, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 16, "tiling": "dynamic"}),
    ("moe", {"model": "tiny", "batch": 16, "regions": 2, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 16, "regions": 2, "tiling": "dynamic"}),
    ("attention", {"strategy": "coarse"}),
    ("attention", {"strategy": "interleaved"}),
    ("attention", {"strategy": "dynamic"}),
    ("decoder", {"model": "tiny", "batch": 3, "regions": 2}),
    ("decoder", {"model": "tiny", "batch": 3, "tiling": "static", "parallelisation": "coarse"}),
]


@pytest.mark.parametrize(("program", "parameters"), spread(SETTINGS, 3))
def test_programs(program: str, parameters: dict[str, Any]) -> None:
    """Traffic, FLOPs and every channel's elements are equal; the peak is within the requirement."""
    report = simulate(wired(program, **parameters), mode="timing")

    assert ("completed", ()) == (report.status, report.comparison.warnings)
    assert [True] * 4 == [each.agrees for each in report.comparison.totals]
    elements = tuple(channel.elements for channel in report.channels_counters)
    assert report.comparison.channel_elements == elements
    moved = {each.what: each.measured for each in report.comparison.totals}
    assert moved["off-chip loads, bytes"] > 0
    assert report.off_chip_traffic_bytes == (
        moved["off-chip loads, bytes"] + moved["off-chip stores, bytes"]
    )


@dataclass(frozen=True)
class WrongStore(LinearOffChipStore):
    """A store whose costs are half of what it does."""

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(store_bytes=64)


@dataclass(frozen=True)
class NotNone(Ticks):
    """A source that says that it sends nothing."""

    @override
    def infer(self, wiring: Any, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((0,), BoolType()),)


@dataclass(frozen=True)
class WrongShape(Flatten):
    """A Flatten that says one element too many come out."""

    @override
    def infer(self, wiring: Any, *inputs: Stream) -> tuple[StreamType, ...]:
        (flat,) = super().infer(wiring, *inputs)
        return (StreamType((flat.shape[0] + 1,), flat.value),)


class TestFaults:
    def test_costs(self) -> None:
        """An operator that moves more than it says is told on loudly."""
        with Program("p") as program:
            WrongStore("y")(LinearOffChipLoad(np.zeros((2, 32), np.float32), (1, 32))())
        report = simulate(program)

        assert (
            "off-chip stores, bytes: 128 measured, 64 expected: this is a fault of the fabric, or "
            "of an operator's costs",
        ) == report.warnings

    def test_shapes(self) -> None:
        """An operator that sends fewer elements than it says, too."""
        with Program("p") as program:
            rows = LinearOffChipLoad(np.zeros((2, 32), np.float32), (1, 32), (2,))()
            LinearOffChipStore("y")(WrongShape(0, 1)(rows))
        report = simulate(program)

        assert (
            "wrong_shape_1.0 -> linear_off_chip_store_1.0: 2 elements measured, 3 expected: this "
            "is a fault of the fabric, or of an operator's shapes"
        ) in report.warnings

    def test_shapes_of_nothing(self) -> None:
        """Nor may it send any where it says none, whatever holds for sizes nobody knows."""
        with Program("p") as program:
            Charge()(NotNone(3)())

        assert (
            "not_none_1.0 -> charge_1.0: 3 elements measured, 0 expected: this is a fault of the "
            "fabric, or of an operator's shapes",
        ) == simulate(program).warnings

    def test_bound_sizes(self) -> None:
        """A program that binds a wrong size is contradicted."""
        choice = np.array([[0], [1], [0]])
        with Program("p") as program:
            rows = Flatten(0, 1)(LinearOffChipLoad(np.zeros((3, 32), np.float32), (1, 32))())
            for number, stream in enumerate(
                Partition(2)(rows, Selectors(choice, 2, name="route")())
            ):
                program.bind(stream.shape[0], 2)
                LinearOffChipStore(f"y{number}")(stream)
        report = simulate(program)

        assert ("the program binds D_route[1] to 2, but the run had 1",) == report.warnings


def _streams(*shapes: tuple[Any, ...]) -> list[Any]:
    return [SimpleNamespace(type=SimpleNamespace(shape=shape, value=None)) for shape in shapes]


def test_learned_by_hand() -> None:
    """Sizes follow from what channels carried, then from what is assumed, then by a guess."""
    a, b, c, d, e, f, g, h, k, m, n, q, r, s, u, v, w = map(Symbol, "abcdefghkmnqrsuvw")
    carried: list[tuple[tuple[Any, ...], int]] = [
        ((a, b), 6), ((n, 3), 12), ((n, m), 20), ((c, d), 7), ((e,), 0), ((e, f), 0), ((g,), 2),
        ((g, h), 5), ((q, r), 8), ((k + 1,), 3), ((4,), 4),
    ]  # fmt: skip
    edges = []
    for shape, _ in carried:
        claims = [None] * (shape == (q, r))
        (stream,) = _streams((q, 2) if claims else shape)
        stream.shape = stream.type.shape
        consumer = SimpleNamespace(inputs=[stream])
        edges.append(SimpleNamespace(type=stream.type, consumer=consumer, input=0, claims=claims))
        if claims:
            edges[-1].type = _streams(shape)[0].type
    program = SimpleNamespace(
        sizes={b: 2, u: 9, n: 3}, absorbed={v: c}, mixtures={}, renewed={s: n + 1, w: Symbol("x")}
    )
    nodes = [SimpleNamespace(inputs=_streams((e, f)), outputs=_streams((u,), (k + 1,)))]
    plan: Any = SimpleNamespace(program=program, edges=edges, nodes=nodes)
    state: Any = SimpleNamespace(channels=[SimpleNamespace(taken=taken) for _, taken in carried])

    sizes: dict[Symbol, int | Fraction] = {
        a: 3, b: 2, c: 1, d: 7, e: 0, f: 0, g: 2, h: Fraction(5, 2), k: 0, m: 5, n: 4, q: 4, r: 2,
        s: 5, u: 9, v: 1,
    }  # fmt: skip
    measured = measured_sizes(plan, state)
    assert Measured(sizes, frozenset({a, b, c, d, s, v}), frozenset({e, g, h, m, n, q, r})) == (
        measured
    )
    assert (Fraction, int) == (type(measured.sizes[h]), type(measured.sizes[m]))


def _warned(
    expected: tuple[Any, int, int, Any], used: tuple[int, int, int, int], measured: Measured,
    *channels: tuple[tuple[Any, ...], Any, int], **bound: Any,
) -> tuple[str, ...]:  # fmt: skip
    """Return the warnings about loads, stores, room, FLOPs, and channels by what they carried."""
    program = SimpleNamespace(
        **{"sizes": {}, "totals": {}, "absorbed": {}, "mixtures": {}, **bound}
    )
    edges = _streams(*(shape for shape, *_ in channels))
    plan: Any = SimpleNamespace(
        program=program, edges=edges, nodes=[SimpleNamespace(inputs=_streams((1,)))]
    )
    loads, stores, room, flops = expected
    metrics: Any = SimpleNamespace(
        paper=SimpleNamespace(load_bytes=loads, store_bytes=stores, on_chip_bytes=room),
        flops=flops,
        carried=[SimpleNamespace(count=count) for _, count, _ in channels],
    )
    memories: Any = SimpleNamespace(
        loaded_bytes=used[0], stored_bytes=used[1], on_chip_peak_bytes=used[2]
    )
    taken = [
        SimpleNamespace(name=f"c{number}", taken=each) for number, (*_, each) in enumerate(channels)
    ]
    state: Any = SimpleNamespace(flops=used[3], channels=taken)
    found = compare(plan, state, memories, measured, metrics)
    assert tuple(-(-count // 1) for _, count, _ in channels) == found.channel_elements
    assert 4 - isinstance(loads, Symbol) == len(found.totals)
    return found.warnings


def test_differences_by_hand() -> None:
    """What is told of sums and channels, and what means of ragged sizes or a guess explain."""
    g, k, m, n, r, t = map(Symbol, ("g", "k", "m", "n", "r~", "t~"))
    fault = ": this is a fault of the fabric, or of an operator's "
    costs = (
        f"off-chip loads, bytes: 1,024 measured, 1,000 expected{fault}costs",
        f"FLOPs: 6 measured, 7 expected{fault}costs",
    )
    room = "on-chip bytes at the peak: 1,001, more than the requirement of 1,000: "
    buffers = f"{room}more than two buffers of an operator were alive"
    means = f"{room}it counts ragged sizes with their mean"
    known = Measured({n: 4, m: 5, k: 2_000, r: Fraction(5, 2)}, frozenset(), frozenset({m, k, r}))
    sums = (1_000, 64, 1_000, 7), (1_024, 64, 1_001, 6)
    plain: list[tuple[tuple[Any, ...], Any, int]] = [
        ((3,), 3_000, 2_000), ((r,), Fraction(5, 2), 3), ((m, k), 0, 4), ((0,), 0, 1), ((m,), 1, 2),
        ((r, 2), 5, 6),
    ]  # fmt: skip
    told = (
        f"c0: 2,000 elements measured, 3,000 expected{fault}shapes",
        f"c3: 1 element measured, 0 expected{fault}shapes",
        f"c4: 2 elements measured, 1 expected{fault}shapes",
        f"c5: 6 elements measured, 5 expected{fault}shapes",
    )
    assert (costs[0], costs[1], buffers, *told) == _warned(*sums, known, *plain)
    assert (means, *told) == _warned(*sums, known, *plain, ((r, t), 6, 7))
    guessed = known._replace(guessed=frozenset({g}))
    assert (means, *told) == _warned(*sums, guessed, *plain, ((g,), 6, 7))
    assert (buffers,) == _warned((g, 64, 1_000, 6), (1, 64, 1_001, 6), known)
    assert () == _warned((1, 2, 3, 4), (1, 2, 3, 4), known)
    assert (
        "the program binds k to 1,500, but the run had 2,000",
        "the program binds r~ to 3, but the run had 5/2",
        "the program binds k + m to 1,000, but the run had 2,005",
    ) == _warned(
        (1, 2, 3, 4), (1, 2, 3, 4), known, sizes={n: 7, m: 5, k: 1_500, r: 3},
        totals={m + k: 1_000, n + k: 9, m + 1: 6},
    )  # fmt: skip
