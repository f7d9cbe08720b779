"""Compares re-timed records of random networks with runs, cycle for cycle."""

from __future__ import annotations

from typing import Final

from hypothesis import assume, event, given
from hypothesis import strategies as st

from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer
from tests.fabric.retiming.networks import Network, networks
from tests.fabric.retiming.real import UNBOUNDED, timed
from tests.profiles import examples

SHORT: Final = examples(quick=12, deep=400)


def _record_of(network: Network, depth: int) -> Record | None:
    record, ran = network.recorded([depth] * len(network.options))
    if record is not None:
        assert () == record.arbitrated
        assert ran == timed(Retimer(record), record.depths.tolist())
    return record


def _check(network: Network, data: st.DataObject) -> None:
    records = [_record_of(network, depth) for depth in (UNBOUNDED, 2)]
    retimers = [Retimer(record) for record in records if record is not None]
    assume(retimers)
    vectors = st.lists(
        st.sampled_from((1, 1, 2, 3, 5)),
        min_size=len(network.options),
        max_size=len(network.options),
    )
    ones = [1] * len(network.options)
    for vector in (ones, data.draw(vectors), data.draw(vectors)):
        ran = network.run(vector)
        event("deadlock" if ran.cycles is None else "completed")
        for retimer in retimers:
            assert ran.ends_as(timed(retimer, vector))


@SHORT
@given(networks(), st.data())
def test_retimed_random_network_equals_its_run(network: Network, data: st.DataObject) -> None:
    _check(network, data)
