"""Compute bandwidth: what the slowest unit gets, against all ways to share it out."""

from __future__ import annotations

import heapq
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Program, ProgramError, simulate
from operators import Accum, LinearOffChipLoad, LinearOffChipStore, Map, SiLU, Tensor
from operators.functions.retile import RetileRow
from operators.kernels.realise import Demand, demands_of, share_out, shares
from operators.off_chip_load import RandomOffChipLoad
from operators.sources import RaggedIntegers

DEMANDS = st.builds(Demand, st.integers(1, 6), st.integers(1, 12))


@given(st.lists(DEMANDS, min_size=1, max_size=3), st.integers(3, 12))
def test_no_other_way_is_faster(demands: list[Demand], total: int) -> None:
    """All ways to share out a few FLOPs per cycle are tried."""
    found = shares({str(n): each for n, each in enumerate(demands)}, total)

    ways = itertools.product(range(1, total + 1), repeat=len(demands))
    best = min(
        max(each.cycles(share) for each, share in zip(demands, way, strict=True))
        for way in ways
        if sum(way) <= total
    )
    assert sum(found.values()) <= total
    assert max(each.cycles(found[str(n)]) for n, each in enumerate(demands)) == best


@given(st.lists(DEMANDS, min_size=1, max_size=8), st.integers(8, 200))
def test_it_is_where_raising_the_slowest_ends(demands: list[Demand], total: int) -> None:
    """StreamTensor's loop: the slowest unit is raised to its next step, while that fits."""
    share = [1] * len(demands)
    heap = [(-each.cycles(1), n) for n, each in enumerate(demands)]
    heapq.heapify(heap)
    while True:
        cycles, n = heap[0]
        wanted = share[n]
        while wanted <= total and demands[n].cycles(wanted) == -cycles:
            wanted += 1
        if sum(share) - share[n] + wanted > total:
            break
        share[n] = wanted
        heapq.heapreplace(heap, (-demands[n].cycles(wanted), n))

    found = shares({str(n): each for n, each in enumerate(demands)}, total)

    assert max(each.cycles(found[str(n)]) for n, each in enumerate(demands)) == -heap[0][0]


def test_too_little_for_all_is_refused() -> None:
    """Each unit has at least one FLOP per cycle."""
    with pytest.raises(
        ConfigurationError,
        match="flops_per_cycle is 1 for 2 compute units: expected at least one for each",
    ):
        shares({"a": Demand(1, 1), "b": Demand(1, 1)}, 1)


def wired() -> Program:
    """Two maps, the second one of which is given its bandwidth."""
    with Program("two maps") as program:
        x = LinearOffChipLoad(np.ones((16, 64), np.float32), tile=(4, 64))()
        y = Map(SiLU(), name="first")(x)
        LinearOffChipStore("y")(Map(SiLU(), name="second", flops_per_cycle=7)(y))
    return program


def test_demands_are_what_runs_compute() -> None:
    """The elements and FLOPs of a run; who was given bandwidth keeps it."""
    program = wired()

    demands = demands_of(program)

    flops = simulate(program).flops
    assert flops is not None
    assert demands == {"first": Demand(4, flops // 2 // 4)}


def test_demands_of_streams_whose_lengths_are_not_known() -> None:
    """A single operation of one element; where a mean is bound, both are rounded up."""
    with Program("ragged") as program:
        x = Tensor((4, 64), np.ones((4, 64), np.float32), dtype="float32")
        places = RaggedIntegers([[0], [1, 2]])()
        rows = RandomOffChipLoad(x, (1, 64))(places)
        y = Map(SiLU(), name="silu")(rows)
        LinearOffChipStore("y")(Accum(RetileRow(), name="packed")(y))
    assert demands_of(program) == {"silu": Demand(1, 1)}

    program.bind(places.shape[-1], Fraction(4, 3))

    # Of eight thirds of an element, with 8 operations for each of 64 numbers.
    assert demands_of(program) == {"silu": Demand(3, 456)}


def test_the_units_have_their_shares() -> None:
    """A run reports what was shared out, and is as slow as that."""
    program = wired()
    share_out(program, 16)

    report = simulate(program)

    assert report.allocated_flops_per_cycle == 16 + 7
    units = {each.name: each for each in report.units}
    assert units["first"].flops_per_cycle == 16
    assert units["first"].busy_cycles == demands_of(wired())["first"].cycles(16)


def test_only_compute_operators_are_allotted_bandwidth() -> None:
    """The message names what was given."""
    with pytest.raises(
        ProgramError,
        match="allot gives bandwidth to 'third': expected a compute operator's name",
    ):
        wired().allot({"third": 3})
