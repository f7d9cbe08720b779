from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import operators as op
from fabric import ConfigurationError, Program, simulate
from operators.kernels.realise import Demand, demands_of, share_out, shares

DEMANDS = st.builds(Demand, st.integers(1, 6), st.integers(1, 12))


@given(st.lists(DEMANDS, min_size=1, max_size=3), st.integers(3, 12))
def test_no_other_share_of_bandwidth_is_faster(demands: list[Demand], total: int) -> None:
    found = shares({str(n): each for n, each in enumerate(demands)}, total)

    ways = itertools.product(range(1, total + 1), repeat=len(demands))
    best = min(
        max(each.cycles(share) for each, share in zip(demands, way, strict=True))
        for way in ways
        if sum(way) <= total
    )
    assert sum(found.values()) <= total
    assert max(each.cycles(found[str(n)]) for n, each in enumerate(demands)) == best


def test_too_little_for_all_is_refused() -> None:
    with pytest.raises(
        ConfigurationError,
        match="flops_per_cycle is 1 for 2 compute units: expected at least one for each",
    ):
        shares({"a": Demand(1, 1), "b": Demand(1, 1)}, 1)


def wired() -> Program:
    with Program("two maps") as program:
        x = op.LinearOffChipLoad(np.ones((16, 64), np.float32), tile=(4, 64))()
        y = op.Map(op.SiLU(), name="first")(x)
        op.LinearOffChipStore("y")(op.Map(op.SiLU(), name="second", flops_per_cycle=7)(y))
    return program


def test_unit_with_unbound_sizes_demands_one_operation() -> None:
    with Program("ragged") as program:
        rows = op.RandomOffChipLoad(np.ones((4, 64)), (1, 64))(op.RaggedIntegers([[0], [1, 2]])())
        op.Consumer()(op.Map(op.SiLU(), name="silu")(rows))
    assert demands_of(program) == {"silu": Demand(1, 1)}


def test_run_reports_the_shares_of_its_units() -> None:
    program = wired()
    share_out(program, 16)

    report = simulate(program)

    assert report.allocated_flops_per_cycle == 16 + 7
    units = {each.name: each for each in report.units}
    assert units["first"].flops_per_cycle == 16
    assert units["first"].busy_cycles == demands_of(wired())["first"].cycles(16)
