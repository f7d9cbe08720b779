"""No run of an operator, with any neighbours, is below the bound that its ``work`` gives."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric
import operators
from fabric import Program, hardware_scope
from fabric.extend import ComputeOperator, Operator
from tests.operators.driving import Choices
from tests.profiles import examples, spread
from tests.symbolic.bounded import compared, drawn_hardware, drawn_options
from tests.symbolic.surroundings import CASES, Surroundings

NAMES = {kind.__name__: kind for kind in CASES}


def test_operator_that_a_user_can_wire_has_a_case() -> None:
    exported = [getattr(module, name) for module in (operators, fabric) for name in module.__all__]
    found = {each for each in exported if isinstance(each, type) and issubclass(each, Operator)}
    assert set(CASES) == found - {Operator, ComputeOperator}


@pytest.mark.parametrize("engine", ["compiled", "tasks"])
@pytest.mark.parametrize("name", spread(NAMES, 10))
@examples(quick=4, deep=2_000)
@given(data=st.binary(min_size=80, max_size=80))
def test_run_of_operator_takes_at_least_its_work(name: str, engine: str, data: bytes) -> None:
    choices, source = Choices(data), random.Random(data)
    with (
        hardware_scope(drawn_hardware(Choices(source.randbytes(20)))),
        Program("drawn", channel_depth=1000) as built,
    ):
        around = Surroundings(choices, built)
        for stream in CASES[NAMES[name]](around):
            around.end(stream)
        around.beside()
    compared(built, **{**drawn_options(built, source), "engine": engine})
