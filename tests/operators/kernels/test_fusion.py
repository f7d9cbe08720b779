"""Fusion: StreamTensor's Algorithm 2, against what it says of each kernel, on random models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import CapacityError, Layout
from operators.functions.steps import Placed, Pointwise
from operators.kernels.fusion import Buffer, Fusion, Needs, fused, merge_chains, needs_of
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.model import Model
from operators.kernels.row_local import RowLocal, row_local
from operators.kernels.tensors import Computed, Opaque, Source, Stored, View
from tests.operators.kernels.test_realise import Added

LAYOUT = Layout.tiled((4, 4), (2, 2))
FLOAT = np.dtype(np.float32)


class Planned(Kernel):
    """A kernel that is only planned."""

    family = "planned"

    def __init__(self, name: str, sources: Sequence[Source], *, opaque: bool = False) -> None:
        """Read ``sources``, and give one tensor."""
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
    """A model of some kernels, each of which reads a few that are in front of it."""
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
                key = operand.view.source, size  # one converter for all that want that size
            buffers[operand] = Buffer(key, size if spillable else min(size, 1), 0, spillable)
        kernels.append(kernel)
    own = {kernel: draw(st.sampled_from([0, 0, 1, 4])) for kernel in kernels}
    return Model(kernels), Needs(own, buffers)


def giver(model: Model, operand: Operand) -> Kernel | None:
    """The kernel that gives an operand."""
    return next((each for each in model.kernels if operand.view.source in each.results), None)


def taken(model: Model, needs: Needs, fusion: Fusion, group: Sequence[Kernel]) -> int:
    """What kernels of one group take together, as the words of ``Needs`` have it."""
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
    """Each kernel is where Algorithm 2 puts it, given where those in front of it are."""
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
def test_what_is_fused_fits(given_: tuple[Model, Needs], budget: int) -> None:
    """No group takes more than there is, and all that is spilled lies between two groups."""
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


@given(planned())
def test_with_room_for_all_there_is_one_group(given_: tuple[Model, Needs]) -> None:
    """Nothing is spilled where all of it fits."""
    model, needs = given_

    fusion = fused(model, needs, 10_000)

    assert len(fusion.groups) == 1
    assert not fusion.spilled


def test_what_is_kept_of_tensors_in_memory_is_read_again_largest_first() -> None:
    """Two weights that would be kept, and room for the smaller one, or for a tile of each."""
    kernel = Planned("k", [STORED, STORED])
    first, second = kernel.operands
    needs = Needs({kernel: 1}, {first: Buffer(1, 6, 1), second: Buffer(2, 4, 1)})

    assert fused(Model([kernel]), needs, 11).spilled == frozenset()
    assert fused(Model([kernel]), needs, 10).spilled == {first}
    assert fused(Model([kernel]), needs, 6).spilled == {first}
    assert fused(Model([kernel]), needs, 5).spilled == {first, second}
    assert fused(Model([kernel]), needs, 3).spilled == {first, second}


def test_a_kernel_that_never_fits_is_named() -> None:
    """It says which kernel, what it takes and what there is: own buffers, and what cannot go."""
    kernel = Planned("attention", [STORED])
    weight = {kernel.operands[0]: Buffer(1, 60, 6)}
    reader = Planned("rows", [STORED, kernel.results[0]])
    read = dict(zip(reader.operands, (Buffer(2, 0), Buffer(3, 700, 0, False)), strict=True))
    expected = "expected at most 1,000, the schedule's on_chip_bytes$"

    with pytest.raises(
        CapacityError, match=rf": attention \(planned\) needs buffers of 1,206 bytes: {expected}"
    ):
        fused(Model([kernel]), Needs({kernel: 1_200}, weight), 1_000)
    needs = Needs({kernel: 0, reader: 301}, weight | read)
    with pytest.raises(
        CapacityError, match=rf": rows \(planned\) needs buffers of 1,001 bytes: {expected}"
    ):
        fused(Model([kernel, reader]), needs, 1_000)


ROWS = Layout.tiled((4, 6), (2, 6))


def given_rows(name: str, shape: tuple[int, ...] = (4, 6)) -> Operand:
    """A tensor in memory, whose rows or single numbers are repeated where they have to be."""
    view = View.of(Stored.of(name, shape, FLOAT, None)).expanded((4, 6))
    return Operand(view, ROWS, broadcasts=(0, 1))


def local(name: str, operands: Sequence[Operand], *functions: str) -> RowLocal:
    """A kernel that does one function of all operands, and then one of what that gives."""
    steps = [
        Pointwise(
            tuple(range(len(operands))) if not number else (len(operands) + number - 1,),
            FLOAT,
            each,
        )
        for number, each in enumerate(functions)
    ]
    return row_local(name, operands, steps, Computed(name, (4, 6), FLOAT, ROWS))


def test_steps_of_a_kernel() -> None:
    """What is read twice is one operand; what is repeated is put in its places where it has to."""
    x, row, number = given_rows("x"), given_rows("row", (1, 6)), given_rows("number", (1, 1))
    kernel = local("k", [x, row, replace(x)], "where", "neg")
    assert [x.view, row.view] == [each.view for each in kernel.operands]
    assert (2, (0, 1, 0), (2,)) == (
        kernel.chain.count,
        *(step.reads for step in kernel.chain.steps),
    )
    # A row that may not stay single comes first, in its places: six numbers, twice.
    placed = local("k", [x, replace(row, broadcasts=()), replace(number)], "where", "neg")
    first, second, third = placed.chain.steps
    assert [(1,), (0, 3, 2), (4,)] == [each.reads for each in (first, second, third)]
    assert Placed((1,), FLOAT, 2, 6, (0, 1, 2, 3, 4, 5) * 2) == first
    # Nothing but rows, or but numbers: the result is put in its places.
    for operand, places in ((row, (0, 1, 2, 3, 4, 5) * 2), (number, (0,) * 12)):
        steps = local("k", [operand], "exp").chain.steps
        assert steps[1:] == (Placed((1,), FLOAT, 2, 6, places),)


def test_chains_that_are_merged() -> None:
    """The reader's operands come first, each once, and then what it read has done comes."""
    x, y, row = given_rows("x"), given_rows("y"), given_rows("row", (1, 6))
    first = local("first", [x, row], "add", "exp")
    read = Operand(View.of(first.results[0]), ROWS)
    second = local("second", [y, read, x], "where")
    model = Model([first, second], {"z": View.of(second.results[0])})

    merge_chains(model)

    (kernel,) = model.kernels
    assert isinstance(kernel, RowLocal)
    assert (kernel.name, kernel.results) == ("second", second.results)
    assert [y.view, x.view, row.view] == [each.view for each in kernel.operands]
    assert [("add", (1, 2)), ("exp", (3,)), ("where", (0, 4, 1))] == [
        (step.name, step.reads) for step in kernel.chain.steps if isinstance(step, Pointwise)
    ]


@pytest.mark.parametrize(
    ("layout", "outputs", "again", "merged"),
    [
        (ROWS, 0, False, True),
        (ROWS, 1, False, False),
        (ROWS, 0, True, False),
        (Layout.tiled((4, 6), (1, 6)), 0, False, False),
        (Layout.tiled((4, 6), (2, 6), (1, 0)), 0, False, True),
        (Layout((4, 6), (2, 6), (2,), (2,), (0,)), 0, False, True),
        (Layout((4, 6), (2, 6), (2, 2), (2, 1), (0, None)), 0, False, False),
    ],
)
def test_which_chains_are_merged(layout: Layout, outputs: int, again: bool, merged: bool) -> None:
    """None of which another reads a part, that is an output, or is read in other tiles or again."""
    first = local("first", [given_rows("x")], "exp")
    operand = Operand(View.of(first.results[0]), layout)
    result = Computed("second", (4, 6), FLOAT, layout)
    second = row_local("second", [operand], [Pointwise((0,), FLOAT, "neg")], result)
    model = Model([first, second], {"z": View.of(result)})
    for number in range(outputs):
        model.outputs[f"o{number}"] = View.of(first.results[0])
    if again:
        model.kernels.append(Planned("again", [first.results[0]]))

    merge_chains(model)

    names = [each.name for each in model.kernels]
    assert names == [
        *(["second"] if merged else ["first", "second"]),
        *(["again"] if again else []),
    ]


def test_needs() -> None:
    """Buffers of two tiles of 48 bytes and of one, and of six of 16 bytes that two share."""
    stored = View.of(Stored.of("x", (4, 6), FLOAT, None))
    often = Layout((4, 6), (2, 6), (3, 2, 5), (1, 2, 1), (None, 0, None))
    columns = Layout.tiled((4, 6), (4, 2), (1, 0))
    again = Added("again", [stored], often)
    first = Added("first", [stored], ROWS)
    given_ = View.of(first.results[0])
    second = Added("second", [given_], columns)
    third = Added("third", [given_, View.of(second.results[0])], columns)
    model = Model([again, first, second, third])

    needs = needs_of(model)

    assert dict.fromkeys(model.kernels, 0) == needs.kernels

    def sizes(kernel: Kernel) -> list[tuple[int, int, bool]]:
        found = [needs.operands[each] for each in kernel.operands]
        return [(each.size_bytes, each.spilled_bytes, each.spillable) for each in found]

    # A buffer is there twice, and a tile comes: where nothing is kept, the one read at once stays.
    assert [((2 * 2 + 1) * 48, (2 * 1 + 1) * 48, True)] == sizes(again)
    assert [(0, 0, True)] == sizes(first)
    assert [((2 * 6 + 1) * 16, 0, True)] == sizes(second)
    assert [((2 * 6 + 1) * 16, 0, True), (0, 0, True)] == sizes(third)
    shared, other = (needs.operands[each].shared_by for each in third.operands)
    assert needs.operands[second.operands[0]].shared_by == shared != other
