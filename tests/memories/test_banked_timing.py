from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from operator import attrgetter
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.messages.errors import Refusal
from fabric.timing.memories import banked_commands
from fabric.timing.memories.banked import REQUESTS_PER_CALL, BankedMemory
from tests.fabric.loops_in_python import in_python
from tests.memories.choosing import serve
from tests.memories.commands import Command, commands
from tests.memories.driven import answers, clients_of
from tests.memories.random_memories import Demand, Script, descriptions, scripts
from tests.memories.replay import FAR
from tests.profiles import examples


class _Run(NamedTuple):
    memory: BankedMemory
    answered: list[list[int]]
    log: list[Command]


def _run(
    hbm: BankedDescription,
    script: Script,
    horizons: Sequence[int] = (FAR,),
    requests_per_call: int = REQUESTS_PER_CALL,
) -> _Run:
    units = clients_of(script)
    memory = BankedMemory(hbm, units[::2], units[1::2], logged=1 << 15)
    memory.requests_per_call = requests_per_call
    answered = answers(memory, units, script, horizons)
    return _Run(memory, answered, sorted(commands(memory, hbm.dram)))


def _demand(address: int, requests: int) -> Demand:
    size = 64 * requests
    return Demand(0, Burst(address=address, rows=1, row_bytes=size, pitch_bytes=size, write=False))


_ONE_CHANNEL = BankedDescription(channels=1, refreshes=False)
# The first client begins while the last client hands requests over, and is served first.
_WHILE_ANOTHER: Script = [[_demand(0, 1), _demand(1 << 20, 40)], [], [_demand(0, 200)]]

_horizons = st.lists(st.integers(1, 60), min_size=1, max_size=5)


class TestBanked:
    @examples(quick=10, deep=300)
    @given(descriptions(), scripts())
    @example(_ONE_CHANNEL, _WHILE_ANOTHER)
    def test_commands_answers_and_counters_equal_the_reference_model(
        self, hbm: BankedDescription, script: Script
    ) -> None:
        run, expected = _run(hbm, script), serve(hbm, script)
        # Commands to all banks have no row.
        found = [
            each._replace(row=0) if each.what in {"precharge all", "refresh"} else each
            for each in run.log
        ]
        assert sorted(each for channel in expected.channels for each in channel.log) == found
        assert expected.answered == run.answered
        counters = run.memory.counters()
        assert expected.counts == [
            list(astuple(each)[2:]) for each in sorted(counters.clients, key=attrgetter("unit"))
        ]
        end = counters.channels[0].bus.total // hbm.dram.pseudo_channels
        every = [its.bus_uses(end) for its in expected.channels]
        for channel, its, became in zip(counters.channels, expected.channels, every, strict=True):
            assert [channel.reads, channel.writes] == its.served
            assert [channel.row_hits, channel.row_misses, channel.row_conflicts] == its.met
            assert list(astuple(channel.bus)) == became.sum(axis=0).tolist()
        starts = range(0, end, counters.period_cycles)
        periods = np.add.reduceat(sum(every), starts) if starts else np.zeros((1, 6))
        assert [list(astuple(each)) for each in counters.periods] == periods.tolist()

    @examples(quick=10, deep=200)
    @given(descriptions(), scripts(), _horizons, st.sampled_from([1, 2, 7, 30]))
    def test_horizons_do_not_change_commands_or_answers(
        self, hbm: BankedDescription, script: Script, horizons: list[int], requests_per_call: int
    ) -> None:
        at_once = _run(hbm, script)
        cut = _run(hbm, script, horizons, requests_per_call)
        assert at_once.answered == cut.answered
        assert at_once.log == cut.log
        assert at_once.memory.counters() == cut.memory.counters()

    @examples(quick=5, deep=40)
    @given(descriptions(), scripts())
    def test_renumbered_ages_do_not_change_commands(
        self, hbm: BankedDescription, script: Script
    ) -> None:
        at_once = _run(hbm, script)
        most = hbm.read_window_bursts + hbm.write_window_bursts
        with in_python(), mock.patch.object(banked_commands, "MOST_AGE", 2 * most):
            anew = _run(hbm, script)
        assert at_once.answered == anew.answered
        assert at_once.log == anew.log

    def test_tile_of_too_many_requests_is_refused(self) -> None:
        (unit,) = units = clients_of([()])
        memory = BankedMemory(BankedDescription(channels=1), units, [])
        tile = Burst(0, 1 << 27, 65, 128, write=False)
        memory.submit(unit, tile)
        assert (memory.pending, memory.requests, memory.served(unit)) == (True, 1 << 28, 0)
        text = (
            "a tile of 134,217,729 rows of 65 bytes takes 268,435,458 requests to the HBM: "
            "expected at most 268,435,456"
        )
        with pytest.raises(Refusal, match=text):
            memory.submit(unit, tile._replace(rows=(1 << 27) + 1))

    def test_periods_of_long_runs_double_their_length(self) -> None:
        hbm = BankedDescription(channels=2)
        burst = Burst(0, rows=1, row_bytes=64, pitch_bytes=64, write=False)
        gaps = (5_000, 13_000, 200, 30_000)
        run = _run(hbm, [[Demand(gap, burst) for gap in gaps]])
        counters = run.memory.counters()

        carried = Counter[int]()
        for each in run.log:
            if each.what == "read":
                carried[each.cycle // counters.period_cycles] += hbm.dram.burst_cycles
        buses = 2 * hbm.dram.pseudo_channels
        *whole, last = [sum(astuple(each)) for each in counters.periods]
        assert {counters.period_cycles * buses} == set(whole)
        assert 0 < last <= counters.period_cycles * buses
        assert sum(gaps) // 512 < counters.period_cycles <= sum(gaps) // 100
        assert dict(carried) == {
            number: each.data for number, each in enumerate(counters.periods) if each.data
        }
