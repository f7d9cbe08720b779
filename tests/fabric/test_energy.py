"""Compares seconds and joules of runs with sums by hand and with counts in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

import fabric as fab
import fabric.extend as ext
import operators as op
from fabric.graph.hardware.latency import Hop
from fabric.graph.loading.program_file import load_program
from tests.profiles import examples
from tests.programs.loading import PROGRAMS

PRICES: Final = {
    "hbm_picojoules_per_byte": 31,
    "memory_write_picojoules_per_byte": 7,
    "memory_read_picojoules_per_byte": 5,
    "fifo_picojoules_per_byte": 3,
    "hop_picojoules_per_byte": 2,
    "bfloat16_flop_picojoules": 0.5,
    "static_watts": 4,
}
CLOCK: Final = ext.ClockDescription(frequency_hz=250_000_000)
PRICED: Final = fab.Hardware(clock=CLOCK, energy=ext.EnergyDescription(**PRICES))


def product(rows: int = 4, *, in_memory: bool = False) -> fab.Program:
    with fab.Program("product", mode="functional") as program:
        a = op.LinearOffChipLoad(np.ones((16 * rows, 32), np.float32), tile=(16, 32), name="a")()
        b = op.LinearOffChipLoad(np.ones((32, 8), np.float32), tile=(32, 8), name="b")()
        buffers = op.Bufferize(rank=2, name="buffer")(b)
        again = op.Streamify(repeats=(rows,), name="again")(buffers)  # [1, 4, 1, 1]
        weights = op.Flatten(0, 1, name="flat")(again)  # [1, 4, 1]
        result = op.Map(op.Matmul(), to_memory=in_memory, name="product")(a, weights)
        op.LinearOffChipStore("y", name="store")(result)
    return program


A, B, Y = 16 * 32 * 2, 32 * 8 * 2, 16 * 8 * 2


def joules(picojoules: float) -> object:
    return near(picojoules * 1e-12)


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=0)


def on(hardware: fab.Hardware, build: Callable[[], fab.Program]) -> fab.Program:
    with fab.hardware_scope(hardware):
        return build()


class TestByHand:
    @pytest.mark.parametrize("mode", ["timing", "functional"])
    @pytest.mark.parametrize("engine", ["compiled", "tasks"])
    def test_energy_of_each_cause_is_its_events_times_its_price(
        self, mode: str, engine: Literal["compiled", "tasks"]
    ) -> None:
        program = on(PRICED, product)

        report = fab.simulate(program, mode=mode, engine=engine)

        assert report.cycles is not None
        expected = {
            # whole requests of 64 bytes: a row of b or y takes one request
            "hbm": 31 * (4 * A + 64 * 32 + 64 * 4 * 16),
            # written by the two loads, the buffer and the store
            "memory_write": 7 * (4 * A + B + B + 4 * Y),
            # read from the two loads, four times from the buffer, and from the store
            "memory_read": 5 * (4 * A + B + 4 * B + 4 * Y),
            # a, b, a reference of 8 bytes, the buffer's tile four times over two channels, and y
            "fifo": 3 * (4 * A + B + 8 + 8 * B + 4 * Y),
            "hop": 2 * (4 * A + B + 8 + 8 * B + 4 * Y),
            "bfloat16_flop": 0.5 * 4 * 2 * 16 * 32 * 8,
            "static": 4e12 * report.cycles / 250e6,
        }
        assert {cause: joules(each) for cause, each in expected.items()} == report.joules_by_cause
        assert joules(sum(expected.values())) == report.joules
        assert report.cycles / 250e6 == report.seconds

    def test_long_channel_costs_three_hops(self) -> None:
        near = fab.simulate(on(PRICED, product)).joules_by_cause
        far = fab.simulate(on(PRICED, product), hops={"store.0": Hop(3, 1)}).joules_by_cause

        assert near is not None
        assert far is not None
        assert joules(2 * (4 * A + B + 8 + 8 * B + (3 * 4) * Y)) == far["hop"]
        assert near["fifo"] == far["fifo"]

    def test_operations_are_priced_by_their_type(self) -> None:
        def sums() -> fab.Program:
            with fab.Program("sums") as program:
                for number, dtype in enumerate(("int8", "float32")):
                    x = op.Tensor((8, 16), dtype=dtype)
                    tiles = op.LinearOffChipLoad(x, tile=(4, 16))()
                    again = op.LinearOffChipLoad(x, tile=(4, 16))()
                    op.LinearOffChipStore(f"y{number}")(op.Map(op.Add())(tiles, again))
            return program

        prices = ext.EnergyDescription(int8_flop_picojoules=2, float32_flop_picojoules=9)
        found = fab.simulate(on(fab.Hardware(energy=prices), sums)).joules_by_cause

        assert found is not None
        assert joules(2 * 8 * 16) == found["int8_flop"]
        assert joules(9 * 8 * 16) == found["float32_flop"]


@dataclass
class Carried(ext.Observer):
    carried_bytes: list[int] = field(default_factory=list)

    @override
    def watch(self, channel: ext.Watched) -> Callable[..., None]:
        return self._hop

    def _hop(self, element: ext.Element, *_: object) -> None:
        self.carried_bytes.append(bytes_of(element[0]))


def bytes_of(value: ext.Value) -> int:
    match value:
        case fab.Tile():
            return value.rows * value.cols * value.dtype.itemsize
        case fab.Selector():
            return value.width
        case bool():
            return 1
        case ext.BufferReference():
            return 8
        case ext.Empty():
            return 0
        case _:
            return sum(map(bytes_of, value))


def shipped(name: str, **parameters: object) -> fab.Program:
    given = [f"{key}={value}" for key, value in parameters.items()]
    return load_program(PROGRAMS / f"{name}.py", given, PRICED).program


class TestCounted:
    @examples(quick=5, deep=100)
    @given(tokens=st.integers(1, 24), experts=st.integers(1, 4), seed=st.integers(0, 99))
    def test_energy_of_routed_data_equals_the_observed_bytes(
        self, tokens: int, experts: int, seed: int
    ) -> None:
        program = shipped("simplified_moe", tokens=tokens, experts=experts, seed=seed)
        seen = Carried()

        report = fab.simulate(program, observers=[seen])

        assert report.joules_by_cause is not None
        assert joules(3 * sum(seen.carried_bytes)) == report.joules_by_cause["fifo"]
        assert joules(2 * sum(seen.carried_bytes)) == report.joules_by_cause["hop"]
        # The memory units are loads and stores. Tiles that trigger a load are not stored on chip.
        moved_bytes = report.off_chip_traffic_bytes
        assert moved_bytes is not None
        assert joules(7 * moved_bytes) == report.joules_by_cause["memory_write"]
        assert joules(5 * moved_bytes) == report.joules_by_cause["memory_read"]


class TestUnpriced:
    def test_prices_change_no_cycles(self) -> None:
        plain, priced = fab.simulate(product()), fab.simulate(on(PRICED, product))

        said = ("hardware", "seconds", "joules", "spent")
        assert plain == replace(priced, **{name: getattr(plain, name) for name in said})

    @pytest.mark.parametrize(
        ("missing", "cause"),
        [
            ("hbm_picojoules_per_byte", "hbm"),
            ("static_watts", "static"),
        ],
    )
    def test_cause_without_a_price_leaves_no_sum(self, missing: str, cause: str) -> None:
        every = fab.simulate(on(PRICED, product)).joules_by_cause
        hardware = replace(PRICED, energy=replace(PRICED.energy, **{missing: None}))

        report = fab.simulate(on(hardware, product))

        assert every is not None
        assert every | {cause: None} == report.joules_by_cause
        assert report.joules is None


def of_tokens(count: int, phase: Literal["decode", "prefill"], runs: int = 1) -> fab.Report:
    program = on(PRICED, product)
    program.tokens(count, phase=phase)
    program.stands_for(runs)
    return fab.simulate(program)


class TestTokens:
    @examples(quick=5, deep=100)
    @given(count=st.integers(1, 10**6), runs=st.integers(1, 200))
    def test_token_rates_count_all_runs(self, count: int, runs: int) -> None:
        once = fab.simulate(on(PRICED, product))
        report = of_tokens(count, "decode", runs)

        assert (once.cycles, once.seconds, once.joules) == (
            report.cycles,
            report.seconds,
            report.joules,
        )
        assert once.seconds is not None
        assert once.joules is not None
        assert near(count / (runs * once.seconds)) == report.tokens_per_second
        assert near(count / (runs * once.joules)) == report.tokens_per_joule
        assert report.time_to_first_token_seconds is None


def times(values: Mapping[str, float | None], count: int) -> dict[str, float]:
    return {name: (value or 0) * count for name, value in values.items()}


class TestCost:
    def test_cost_counts_every_part_as_often_as_it_runs(self) -> None:
        layer, head = of_tokens(64, "decode", 24), fab.simulate(on(PRICED, lambda: product(2)))

        cost = fab.Cost.of(layer, head)

        assert layer.cycles is not None
        assert head.cycles is not None
        assert 24 * layer.cycles + head.cycles == cost.cycles
        assert near(cost.cycles / 250e6) == cost.seconds
        assert 24 * layer.flops + head.flops == cost.flops  # type: ignore[operator]
        assert layer.joules_by_cause is not None
        assert head.joules_by_cause is not None
        rest = times(head.joules_by_cause, 1)
        every = {
            cause: value + rest[cause] for cause, value in times(layer.joules_by_cause, 24).items()
        }
        assert pytest.approx(every, rel=1e-9, abs=0) == cost.joules_by_cause
        assert near(sum(every.values())) == cost.joules
        assert near(64 * 250e6 / cost.cycles) == cost.tokens_per_second
        assert near(64 / sum(every.values())) == cost.tokens_per_joule
        assert cost.time_to_first_token_seconds is None
        assert [(24, layer.cycles), (1, head.cycles)] == [
            (each["runs"], each["cycles"]) for each in cost.as_json()["parts"]
        ]
