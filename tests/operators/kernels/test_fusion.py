from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Layout
from operators.kernels.fusion import Buffer, Fusion, Needs, fused
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.model import Model
from operators.kernels.tensors import Computed, Opaque, Source, Stored, View

LAYOUT = Layout.tiled((4, 4), (2, 2))
FLOAT = np.dtype(np.float32)


class Planned(Kernel):
    family = "planned"

    def __init__(self, name: str, sources: Sequence[Source], *, opaque: bool = False) -> None:
        self.name = name
        self.operands = tuple(Operand(View.of(source), LAYOUT) for source in sources)
        kind = Opaque(name, (4, 4), FLOAT, "rows") if opaque else None
        self.results = (kind or Computed(name, (4, 4), FLOAT, LAYOUT),)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        raise NotImplementedError


STORED = Stored.of("weight", (4, 4), FLOAT, None)


@st.composite
def planned(draw: st.DrawFn) -> tuple[Model, Needs]:
    kernels: list[Kernel] = []
    buffers = {}
    for number in range(draw(st.integers(1, 9))):
        sources: list[Source] = [STORED] * draw(st.integers(0, 2))
        if kernels:
            chosen = draw(st.lists(st.sampled_from(kernels), max_size=3))
            sources += [each.results[0] for each in chosen]
        kernel = Planned(f"k{number}", sources, opaque=draw(st.integers(0, 9)) == 0)
        for operand in kernel.operands:
            size = draw(st.sampled_from([0, 0, 1, 2, 5, 9]))
            key: object = operand
            if operand.view.source is STORED:
                buffers[operand] = Buffer(key, size, draw(st.integers(0, min(size, 1))))
                continue
            opaque = isinstance(operand.view.source, Opaque)
            spillable = not opaque and draw(st.integers(0, 6)) > 0
            if spillable and size > 1:
                key = operand.view.source, size  # one converter for all readers of this size
            buffers[operand] = Buffer(key, size if spillable else min(size, 1), 0, spillable)
        kernels.append(kernel)
    own = {kernel: draw(st.sampled_from([0, 0, 1, 4])) for kernel in kernels}
    return Model(kernels), Needs(own, buffers)


def giver(model: Model, operand: Operand) -> Kernel | None:
    return next((each for each in model.kernels if operand.view.source in each.results), None)


def taken(model: Model, needs: Needs, fusion: Fusion, group: Sequence[Kernel]) -> int:
    total = sum(needs.kernels[kernel] for kernel in group)
    converters: dict[object, int] = {}
    for kernel in group:
        for operand in kernel.operands:
            buffer = needs.operands[operand]
            if giver(model, operand) is None:
                spilled = operand in fusion.spilled
                total += buffer.spilled_bytes if spilled else buffer.size_bytes
            elif giver(model, operand) in group or not buffer.spillable:
                converters[buffer.shared_by] = buffer.size_bytes
    return total + sum(converters.values())


@given(planned(), st.integers(10, 40))
def test_groups_are_those_of_the_algorithm(given_: tuple[Model, Needs], budget: int) -> None:
    model, needs = given_

    fusion = fused(model, needs, budget)

    order = [kernel for group in fusion.groups for kernel in group]
    assert sorted(map(id, order)) == sorted(map(id, model.kernels))
    index = {kernel: n for n, group in enumerate(fusion.groups) for kernel in group}
    seen: list[Kernel] = []
    for kernel in model.kernels:
        before = [[each for each in group if each in seen] for group in fusion.groups]
        opened = sum(map(bool, before))
        sources = [giver(model, each) for each in kernel.operands]
        groups = [index[each] for each in sources if each is not None]
        room = [
            n for n in range(opened) if taken(model, needs, fusion, [*before[n], kernel]) <= budget
        ]
        if groups:
            expected = max(groups) if max(groups) in room else opened
        else:
            expected = min(room, default=opened)
        assert index[kernel] == expected
        seen.append(kernel)


@given(planned(), st.integers(10, 40))
def test_fused_kernels_fit_into_the_budget(given_: tuple[Model, Needs], budget: int) -> None:
    model, needs = given_

    fusion = fused(model, needs, budget)

    index = {kernel: n for n, group in enumerate(fusion.groups) for kernel in group}
    for group in fusion.groups:
        assert taken(model, needs, fusion, group) <= budget
    for kernel in model.kernels:
        for operand in kernel.operands:
            source = giver(model, operand)
            if source is not None:
                assert index[source] <= index[kernel]
                between = index[source] != index[kernel]
                spillable = needs.operands[operand].spillable
                assert (operand in fusion.spilled) == (between and spillable)
