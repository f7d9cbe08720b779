"""Compares the channels that delay a run with all depths of small networks."""

from __future__ import annotations

from itertools import product
from typing import Final

from hypothesis import assume, event, given
from hypothesis import strategies as st

from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT, Retimer
from tests.fabric.retiming.networks import Network, networks
from tests.fabric.retiming.real import UNBOUNDED
from tests.profiles import examples

MOST: Final = 3

QUICK: Final = examples(quick=10, deep=150)


def _small(network: Network) -> Record:
    assume(1 <= len(network.options) <= 6)
    record, _ = network.recorded([UNBOUNDED] * len(network.options))
    assume(record is not None)
    assert record is not None
    return record


def _below(blamed: frozenset[int], depths: tuple[int, ...]) -> list[tuple[int, ...]]:
    anything = (*range(1, MOST + 1), UNBOUNDED)
    return list(
        product(
            *(
                [depth for depth in anything if number not in blamed or depth <= most]
                for number, most in enumerate(depths)
            )
        )
    )


@QUICK
@given(networks(), st.data())
def test_blamed_channels_no_deeper_do_not_help(network: Network, data: st.DataObject) -> None:
    record = _small(network)
    retimer = Retimer(record)
    least = retimer.time([UNBOUNDED] * len(record.channels)).cycles
    assert least is not None
    depths = data.draw(st.tuples(*[st.integers(1, MOST)] * len(record.channels)))
    limit = data.draw(st.sampled_from((least - 1, least, least + 2, NO_LIMIT)))
    retimed = retimer.time(depths, limit)
    blamed = retimer.blamed(retimed)
    event("deadlock" if retimed.blocked else "passed" if retimed.cycles is None else "ended")
    found = [retimer.time(each, limit).cycles for each in _below(blamed, depths)]
    if retimed.cycles is None:
        assert {None} == set(found)
    else:
        assert all(cycles is None or cycles >= retimed.cycles for cycles in found)


@QUICK
@given(networks(), st.data())
def test_slow_run_that_depths_help_blames_a_channel(network: Network, data: st.DataObject) -> None:
    record = _small(network)
    retimer = Retimer(record)
    unbounded = retimer.time([UNBOUNDED] * len(record.channels)).cycles
    assert unbounded is not None
    depths = data.draw(st.tuples(*[st.integers(1, MOST)] * len(record.channels)))
    limit = data.draw(st.integers(max(0, unbounded - 2), unbounded + 1))
    retimed = retimer.time(depths, limit)
    if retimed.cycles is None:
        assert retimer.blamed(retimed) or limit < unbounded


@QUICK
@given(networks(), st.data())
def test_limit_only_gives_up_later_ends(network: Network, data: st.DataObject) -> None:
    record = _small(network)
    retimer = Retimer(record)
    depths = data.draw(st.tuples(*[st.integers(1, MOST)] * len(record.channels)))
    free = retimer.time(depths)
    if free.cycles is None:
        return
    assert free == retimer.time(depths, free.cycles)
    given_up = retimer.time(depths, free.cycles - 1)
    assert (None, ()) == given_up[:2]
    assert given_up.passed is not None
    assert retimer.clocks[given_up.passed] > free.cycles - 1
