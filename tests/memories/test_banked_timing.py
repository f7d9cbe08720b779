"""The banked memory keeps every time of its channels, and serves every request once.

Its commands are walked by a channel that steps through cycles (``stepping``) and knows nothing of
how they were chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from operator import attrgetter

# Any: fields of a description.
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.least_cycles import most_drain_cycles
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.messages.telling.errors import Refusal
from fabric.timing.memories import banked_columns
from fabric.timing.memories.banked import REQUESTS_PER_CALL, BankedMemory
from fabric.timing.memories.banked_tables import AddressMapping
from tests.fabric.loops_in_python import in_python
from tests.memories.choosing import locations, serve
from tests.memories.commands import Command, commands
from tests.memories.driven import answers, clients_of
from tests.memories.random_memories import Asked, Script, descriptions, scripts
from tests.memories.replay import FAR
from tests.memories.stepping import violations
from tests.profiles import examples

Where = tuple[int, int, int, int, int, str]
"""Channel, pseudo channel, bank group, bank, row, and what is done there."""


class _Run(NamedTuple):
    """What became of a script.

    Attributes:
        memory: that served it.
        answered: when each client saw each of its bursts complete.
        log: all commands, in the order of their cycles.
    """

    memory: BankedMemory
    answered: list[list[int]]
    log: list[Command]


def _run(
    hbm: BankedDescription,
    script: Script,
    horizons: Sequence[int] = (FAR,),
    requests_per_call: int = REQUESTS_PER_CALL,
) -> _Run:
    """Serve ``script``, of whose clients the odd ones write in the order of ports."""
    units = clients_of(script)
    memory = BankedMemory(hbm, units[::2], units[1::2], logged=1 << 15)
    memory.requests_per_call = requests_per_call
    answered = answers(memory, units, script, horizons)
    return _Run(memory, answered, sorted(commands(memory, hbm.organization)))


def _drain_cycles(hbm: BankedDescription) -> int:
    """Return how long after it is due a refresh begins at most.

    It waits as long as lower bounds say, and until the last row that was used may be closed.
    """
    timing = hbm.timing
    written = timing.cwl_cycles + timing.burst_cycles + timing.wr_cycles
    held = max(timing.ras_cycles, timing.rtp_cycles, written)
    return most_drain_cycles(hbm) + held + timing.rp_cycles


def _places(hbm: BankedDescription, burst: Burst) -> list[Where]:
    """Return where the requests of a burst are."""
    what = "write" if burst.write else "read"
    places = locations(hbm, AddressMapping(hbm), burst)
    return [(*place, what) for *place, _ in places]  # type: ignore[misc]


def _where(command: Command) -> Where:
    _, channel, what, *place = command
    return (channel, *place, what)  # type: ignore[return-value]


def _asked(address: int, requests: int) -> Asked:
    """Return a burst of so many requests of 64 bytes, side by side."""
    size = 64 * requests
    return Asked(0, Burst(address=address, rows=1, row_bytes=size, pitch_bytes=size, write=False))


_ONE_CHANNEL = BankedDescription(channels=1, refreshes=False)
_WHILE_ANOTHER: Script = [[_asked(0, 1), _asked(1 << 20, 40)], [], [_asked(0, 200)]]
"""The first client begins while the last is handing over: it is before it all the same."""

_horizons = st.lists(st.integers(1, 60), min_size=1, max_size=5)


class TestBanked:
    @examples(quick=50, deep=200)
    @given(descriptions(), scripts())
    def test_no_command_is_too_early(self, hbm: BankedDescription, script: Script) -> None:
        """Whatever is asked of whichever memory; and refreshes come as often as they are due."""
        log = _run(hbm, script).log
        timing = hbm.timing
        drain = _drain_cycles(hbm) if hbm.refreshes else None
        found = violations(log, timing, hbm.organization, drain_cycles=drain)
        assert [] == found

    @examples(quick=25, deep=300)
    @given(descriptions(), scripts())
    @example(_ONE_CHANNEL, _WHILE_ANOTHER)
    def test_definition(self, hbm: BankedDescription, script: Script) -> None:
        """Commands, answers and counters are those of a memory that looks at all in every cycle."""
        run, expected = _run(hbm, script), serve(hbm, script)
        # What is done to all banks is for no row.
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
        end = counters.channels[0].bus.total // hbm.organization.pseudo_channels
        every = [its.became(end) for its in expected.channels]
        for channel, its, became in zip(counters.channels, expected.channels, every, strict=True):
            assert [channel.reads, channel.writes] == its.served
            assert [channel.row_hits, channel.row_misses, channel.row_conflicts] == its.met
            assert list(astuple(channel.bus)) == became.sum(axis=0).tolist()
        starts = range(0, end, counters.period_cycles)
        periods = np.add.reduceat(sum(every), starts) if starts else np.zeros((1, 6))
        assert [list(astuple(each)) for each in counters.periods] == periods.tolist()

    @examples(quick=50, deep=200)
    @given(descriptions(), scripts())
    def test_every_request_is_served_once(self, hbm: BankedDescription, script: Script) -> None:
        """By as many bursts as it has, in its row, and nothing else is; and counters agree."""
        run = _run(hbm, script)
        bursts = [asked.burst for asks in script for asked in asks]
        per_request = hbm.request_bytes // hbm.organization.burst_bytes
        asked = Counter(place for burst in bursts for place in _places(hbm, burst))
        columns = [each for each in run.log if each.what in {"read", "write"}]
        served = Counter(map(_where, columns))

        assert {place: count * per_request for place, count in asked.items()} == served
        assert [len(asks) for asks in script] == [len(each) for each in run.answered]
        assert asked.total() * hbm.request_bytes == run.memory.bytes_moved

    @examples(quick=50, deep=200)
    @given(descriptions(), scripts())
    def test_answers_come_with_the_data(self, hbm: BankedDescription, script: Script) -> None:
        """A client sees its burst a cycle after data was read, or the last write has gone."""
        run = _run(hbm, script)
        timing = hbm.timing
        gone = {(each.cycle, _where(each)) for each in run.log}
        for asks, answered in zip(script, run.answered, strict=True):
            for asked, seen in zip(asks, answered, strict=True):
                data = 0 if asked.burst.write else timing.cl_cycles + timing.burst_cycles
                last = seen - 1 - data
                assert any((last, place) in gone for place in _places(hbm, asked.burst))

    @examples(quick=50, deep=200)
    @given(descriptions(), scripts())
    def test_counters_are_those_of_the_commands(
        self, hbm: BankedDescription, script: Script
    ) -> None:
        """Requests by what they met, by channel and by client; cycles of buses by what became."""
        run = _run(hbm, script)
        counters = run.memory.counters()
        pseudo_channels = hbm.organization.pseudo_channels
        bursts = hbm.request_bytes // hbm.organization.burst_bytes
        buses = [each.bus for each in counters.channels]
        for number, channel in enumerate(counters.channels):
            did = Counter(each.what for each in run.log if each.channel == number)
            assert did["read"] == channel.reads * bursts
            assert did["write"] == channel.writes * bursts
            # A bank may be closed for one request and opened for another, or closed again.
            assert did["precharge"] >= channel.row_conflicts
            assert did["activate"] >= channel.row_misses
            assert (did["activate"] > 0) == (channel.row_misses + channel.row_conflicts > 0)
            met = channel.row_hits + channel.row_misses + channel.row_conflicts
            assert channel.reads + channel.writes == met
            carried = (did["read"] + did["write"]) * hbm.timing.burst_cycles
            assert carried == channel.bus.data
        cycles = {sum(astuple(bus)) for bus in buses}
        assert 1 == len(cycles)
        assert 0 == cycles.pop() % pseudo_channels
        whole = [sum(each) for each in zip(*map(astuple, buses), strict=True)]
        assert whole == [sum(each) for each in zip(*map(astuple, counters.periods), strict=True)]
        for unit in counters.clients:
            asked = sum(each.burst.requests(hbm.request_bytes) for each in script[unit.unit])
            assert asked == unit.requests == unit.row_hits + unit.row_misses + unit.row_conflicts

    @examples(quick=50, deep=200)
    @given(descriptions(), scripts(), _horizons, st.sampled_from([1, 2, 7, 30]))
    def test_where_it_stops_does_not_matter(
        self, hbm: BankedDescription, script: Script, horizons: list[int], requests_per_call: int
    ) -> None:
        """The same commands and answers, whatever the horizons and the room for signals."""
        at_once = _run(hbm, script)
        cut = _run(hbm, script, horizons, requests_per_call)
        assert at_once.answered == cut.answered
        assert at_once.log == cut.log
        assert at_once.memory.counters() == cut.memory.counters()

    @pytest.mark.parametrize("requests", [1, 2, 3])
    def test_writes_to_an_open_row_are_answered_in_their_cycles(self, requests: int) -> None:
        hbm = BankedDescription(
            channels=1,
            refreshes=False,
            request_bytes=32,
            requests_per_bundle=1,
            cl_cycles=0,
            cwl_cycles=0,
            ccd_s_cycles=1,
            ccd_l_cycles=1,
        )
        size = requests * hbm.request_bytes
        script = [[Asked(0, Burst(at * size, 1, size, size, write=True)) for at in range(9)]]
        assert _run(hbm, script, [1]).answered == _run(hbm, script).answered

    @examples(quick=50, deep=200)
    @given(descriptions(), scripts())
    def test_what_one_at_a_time_meets(self, hbm: BankedDescription, script: Script) -> None:
        """Of requests that nobody meets each has the commands that say what it met."""
        hbm = replace(hbm, refreshes=False)
        asked = [each for asks in script for each in asks]
        one = [[Asked(60, each.burst._replace(rows=1, row_bytes=1)) for each in asked]]
        run = _run(hbm, one)
        did = Counter(each.what for each in run.log)
        channels = run.memory.counters().channels
        conflicts = sum(channel.row_conflicts for channel in channels)
        assert did["precharge"] == conflicts
        assert did["activate"] == conflicts + sum(channel.row_misses for channel in channels)

    @examples(quick=10, deep=40)
    @given(descriptions(), scripts())
    def test_how_far_ages_count_does_not_matter(
        self, hbm: BankedDescription, script: Script
    ) -> None:
        """They are counted anew after so many requests, from the oldest one that waits on."""
        at_once = _run(hbm, script)
        most = hbm.read_window_bursts + hbm.write_window_bursts
        with in_python(), mock.patch.object(banked_columns, "MOST_AGE", 2 * most):
            anew = _run(hbm, script)
        assert at_once.answered == anew.answered
        assert at_once.log == anew.log

    def test_most_requests(self) -> None:
        """A tile of so many requests that the host has no room for them is refused, as told."""
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

    def test_first_come(self) -> None:
        """Rows are opened one after the other, each when all before it is read."""
        hbm = BankedDescription(channels=1, refreshes=False, scheduler="first come")
        script = [[Asked(0, Burst(0, 4, 64, 1 << 13, write=False))]]
        run = _run(hbm, script)
        # Two bursts 4 cycles apart, 14 after the second slot of the activation; with the last
        # burst the next request has its turn.
        each = [("activate", 4), ("read", 18), ("read", 22)]
        assert [(what, cycle + 19 * turn) for turn in range(4) for what, cycle in each] == [
            (each.what, each.cycle) for each in run.log
        ]
        assert run.answered == [[22 + 3 * 19 + hbm.timing.cl_cycles + hbm.timing.burst_cycles + 1]]

    @pytest.mark.parametrize("asked", [425, 428])
    def test_a_refresh_that_waits_for_the_last_request(self, asked: int) -> None:
        """Cycles in which it is due and the last row still read are its own, though all leave."""
        cycles = {"burst": 2, "cl": 6, "cwl": 4, "rcd_read": 5, "rcd_write": 4, "rp": 5, "ras": 12}
        cycles |= {"wr": 6, "rtp": 4, "ccd_s": 2, "ccd_l": 3, "rrd_s": 2, "rrd_l": 3, "rc": 17}
        cycles |= {"wtr_s": 3, "wtr_l": 4, "faw": 12, "rfc": 40, "refi": 450}
        sizes: dict[str, Any] = dict.fromkeys(
            ("channels", "pseudo_channels", "bank_groups", "banks"), 1
        )
        sizes |= dict.fromkeys(("row_bytes", "burst_bytes", "request_bytes"), 64)
        timing: dict[str, Any] = {f"{name}_cycles": each for name, each in cycles.items()}
        mapping = ("channel", "pseudo_channel", "bank_group", "bank", "column", "row")
        hbm = BankedDescription(mapping=mapping, refreshes=True, **sizes, **timing)
        bursts = [Burst(64 * row, 1, 64, 64, write=False) for row in range(2)]
        run = _run(hbm, [[Asked(asked, burst)] for burst in bursts])
        # A row is opened in two cycles, read 5 later, and closed 12 later, which takes 5.
        log = [("activate", 4), ("read", 9), ("precharge", 16), ("activate", 22), ("read", 27)]
        log += [("precharge all", 34), ("refresh", 39)]
        assert [(what, asked + cycle) for what, cycle in log] == [
            (each.what, each.cycle) for each in run.log
        ]
        bus = run.memory.counters().channels[0].bus
        assert (4, asked + 39 + 40 - 450 - 2) == (bus.data, bus.refresh)
        assert (450 - (asked + 3) - 2, asked + 3) == (bus.conflict, bus.idle)

    def test_signals_are_looked_for_while_no_command_can_go(self) -> None:
        """A row that takes a million cycles to open does not keep Python waiting for as long.

        The loop comes back after a hundred steps. One is as long as no answer can come: data do not
        come before a command, and the transfer that it takes.
        """
        hbm = BankedDescription(
            channels=1,
            refreshes=False,
            rcd_read_cycles=10**6,
            ras_cycles=10**6,
            rc_cycles=10**6 + 14,
        )
        units = clients_of([()])
        memory = BankedMemory(hbm, units, [])
        memory.requests_per_call = 100
        at = [0]

        def advanced(*asked: int) -> tuple[int, ...]:
            come_back = advance(*asked)
            at.append(int(memory._state[banked_columns.CYCLE]))
            return come_back

        advance, memory._advance = memory._advance, advanced
        script = [[Asked(0, Burst(0, 1, 64, 64, write=False))]]
        ((answered,),) = answers(memory, units, script, [FAR])
        assert answered > 10**6
        step = banked_columns.LEAST_ANSWER + hbm.timing.cl_cycles + hbm.timing.burst_cycles
        assert max(np.diff(at)) <= 100 * step

    def test_many_wait(self) -> None:
        """Thousands of requests outside of the windows: all of them are served."""
        hbm = BankedDescription(channels=2, requests_per_bundle=16)
        script = [
            [Asked(0, Burst(client << 20, 1, 1 << 17, 1 << 17, client % 2 == 1))]
            for client in range(4)
        ]
        run = _run(hbm, script)
        assert [1, 1, 1, 1] == [len(each) for each in run.answered]
        traffic = run.memory.counters().channels
        assert 4 * (1 << 11) == sum(each.reads + each.writes for each in traffic)
        drain = _drain_cycles(hbm)
        assert [] == violations(run.log, hbm.timing, hbm.organization, drain_cycles=drain)

    def test_periods_of_long_runs(self) -> None:
        """Whose length is doubled: each has all its cycles, and its own bursts."""
        hbm = BankedDescription(channels=2)
        burst = Burst(0, rows=1, row_bytes=64, pitch_bytes=64, write=False)
        gaps = (5_000, 13_000, 200, 30_000)
        run = _run(hbm, [[Asked(gap, burst) for gap in gaps]])
        counters = run.memory.counters()

        carried = Counter[int]()
        for each in run.log:
            if each.what == "read":
                carried[each.cycle // counters.period_cycles] += hbm.timing.burst_cycles
        buses = 2 * hbm.organization.pseudo_channels
        *whole, last = [sum(astuple(each)) for each in counters.periods]
        assert {counters.period_cycles * buses} == set(whole)
        assert 0 < last <= counters.period_cycles * buses
        assert sum(gaps) // 512 < counters.period_cycles <= sum(gaps) // 100
        assert dict(carried) == {
            number: each.data for number, each in enumerate(counters.periods) if each.data
        }
