from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Layout, Program, Report, Stream, simulate
from operators import Add, LinearOffChipStore, Map, RandomOffChipStore, SiLU
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.model import Model
from operators.kernels.off_chip import Store
from operators.kernels.realise import realised
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from tests.profiles import examples

FLOAT = np.dtype(np.float32)
SHAPE = (8, 12)


class Added(Kernel):
    family = "sum"

    def __init__(self, name: str, views: Sequence[View], layout: Layout) -> None:
        self.name = name
        self.operands = tuple(Operand(view, layout) for view in views)
        self.results = (Computed(name, layout.shape, FLOAT, layout),)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        first, *rest = (each for each in inputs if isinstance(each, Stream))
        for each in rest:
            first = Map(Add())(first, each)
        return (Map(SiLU(), name=self.name)(first),) if not rest else (first,)


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...]) -> Layout:
    tile = tuple(draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])) for n in shape)
    return Layout.tiled(shape, (1,) * (len(shape) - 2) + tile[-2:], draw(orders(len(shape))))


def orders(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.permutations(range(rank)).map(tuple)


@st.composite
def models(draw: st.DrawFn) -> tuple[Model, dict[str, np.ndarray]]:
    model = Model()
    given_: list[tuple[View, np.ndarray]] = []
    for name in ("a", "b"):
        data = np.arange(96, dtype=FLOAT).reshape(SHAPE) / 64 + draw(st.integers(0, 99))
        given_.append((View.of(Stored.of(name, SHAPE, FLOAT, data.copy)), data))
    unread: dict[str, tuple[View, np.ndarray]] = {}
    for number in range(draw(st.integers(2, 5))):
        chosen = draw(st.lists(st.sampled_from(given_), min_size=1, max_size=2))
        shape: tuple[int, ...] = SHAPE
        views, arrays = [view for view, _ in chosen], [array for _, array in chosen]
        if draw(st.booleans()):
            views = [each.permuted((1, 0)) for each in views]
            arrays = [array.T for array in arrays]
            shape = SHAPE[::-1]
        elif not any(isinstance(each.source, Stored) for each in views) and draw(st.booleans()):
            shape = (3, *SHAPE)
            views = [each.expanded(shape) for each in views]
            arrays = [np.broadcast_to(array, shape) for array in arrays]
        kernel = Added(f"sum{number}", views, draw(layouts(shape)))
        model.kernels.append(kernel)
        for view, _ in chosen:
            unread.pop(view.source.name, None)
        result = View.of(kernel.results[0]), computed(arrays)
        unread[kernel.name] = result
        given_.append(result if shape == SHAPE else kernel_shaped(result))
    for name, (view, _) in unread.items():
        layout = view.layout
        assert layout is not None
        model.kernels.append(Store(f"out_{name}", Operand(view, layout), view.shape))
    return model, {f"out_{name}": numbers for name, (_, numbers) in unread.items()}


def kernel_shaped(result: tuple[View, np.ndarray]) -> tuple[View, np.ndarray]:
    view, numbers = result
    if len(view.shape) == 2:
        return view.permuted((1, 0)), numbers.T
    return view.sliced(0, 0, 1).reshaped(SHAPE), numbers[0]


def computed(arrays: Sequence[np.ndarray]) -> np.ndarray:
    first, *rest = arrays
    found: np.ndarray = first + rest[0] if rest else first / (1 + np.exp(-first))
    return found


def run(
    model: Model, expected: dict[str, np.ndarray], schedule: Schedule, mode: str = "functional"
) -> tuple[Program, Report]:
    program = realised("model", model, schedule)
    for name, numbers in expected.items():
        outputs: dict[str, Any] = {name: partial(np.copy, numbers)}
        program.expect(**outputs)
    report = simulate(program, mode=mode)
    assert report.status == "completed", report.failure or report.explained
    if mode == "functional":
        assert report.verified, report.verification
    return program, report


@pytest.mark.deep
@given(models(), st.integers(0, 2_500))
@examples(quick=5, deep=40)
def test_fused_and_spilled_models_compute_the_same(
    given_: tuple[Model, dict[str, np.ndarray]], budget: int
) -> None:
    model, expected = given_
    for on_chip_bytes in (None, budget, 0):
        schedule = Schedule(on_chip_bytes=on_chip_bytes)

        _, report = run(model, expected, schedule)

        if on_chip_bytes is not None:
            assert report.extra["largest_group_buffer_bytes"] <= on_chip_bytes
        _, timing = run(model, expected, schedule, mode="timing")
        assert timing.cycles == report.cycles


@given(models(), st.integers(0, 2_500))
@examples(quick=5, deep=40)
def test_predicted_traffic_and_buffers_equal_those_of_the_run(
    given_: tuple[Model, dict[str, np.ndarray]], budget: int
) -> None:
    model, expected = given_
    program, whole = run(model, expected, Schedule(), mode="timing")

    _, report = run(model, expected, Schedule(on_chip_bytes=budget), mode="timing")

    assert report.off_chip_traffic_bytes is not None
    assert whole.off_chip_traffic_bytes is not None
    more = report.off_chip_traffic_bytes - whole.off_chip_traffic_bytes
    assert more == report.extra["spilled_traffic_bytes"] - whole.extra["spilled_traffic_bytes"]
    extra = report.extra
    assert extra["edges_on_chip"] + extra["edges_through_memory"] == len(model.edges())
    stores = [kernel for kernel in model.kernels if isinstance(kernel, Store)]
    stored = {operand for kernel in stores for operand in kernel.operands}
    between = {edge.view.source for edge in model.edges() if edge not in stored}
    assert extra["intermediate_unfused_bytes"] == sum(4 * math.prod(s.shape) for s in between)
    kinds = {node.name: type(node.operator) for node in program.nodes}
    for kernel in stores:
        layout = kernel.operands[0].layout
        places = [*map(tuple, layout.offsets())] if layout else []
        store = LinearOffChipStore if places == sorted(places) else RandomOffChipStore
        assert kinds[f"store_{kernel.name}"] is store
