from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fabric.timing.retiming.retimer import Retimer
from tests.fabric.sizing import problems
from tests.fabric.sizing.brute_force import Case
from tests.fabric.sizing.by_hand import cycles_of
from tests.fabric.sizing.networks import network, options_of, program_of, shape
from tests.profiles import examples


@examples(quick=18, deep=150)
@given(st.randoms(use_true_random=False), st.data())
def test_run_of_a_network_takes_the_cycles_of_the_model(
    random: Random, data: st.DataObject
) -> None:
    drawn = network(random, shape(random))
    case = Case(drawn)
    depths = [data.draw(st.integers(1, most)) for most in case.most]
    options = dict(zip(options_of(drawn.shape), depths, strict=True))
    expected = cycles_of(drawn, depths)

    assert expected == problems.cycles_of(program_of(drawn), options)

    record = case.record
    in_edge_order = [options[channel.option] for channel in record.channels]
    assert expected == Retimer(record).time(in_edge_order).cycles
