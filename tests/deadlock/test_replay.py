from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import event, given

from fabric import Program, Stream, simulate
from fabric.analysis.deadlock import remedy
from fabric.analysis.deadlock.document import Remedy
from fabric.analysis.deadlock.remedy import find_remedy
from fabric.analysis.deadlock.trial import EFFORT_ELEMENTS, Growth, Replay, Search
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.engine.channel import Channel
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.deadlock import test_random
from tests.deadlock.cases import CASES, fork_join
from tests.deadlock.parts import Script, feedback, sink
from tests.deadlock.test_random import Network, networks
from tests.profiles import examples, spread

FEWER = examples(quick=12, deep=200)


@contextmanager
def recorded_from(elements: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(remedy, "_RECORDED_ELEMENTS", elements)
        yield


def found(
    program: Program,
    depths: dict[str, int] | None = None,
    *,
    records: bool,
    effort: int = EFFORT_ELEMENTS,
) -> Remedy:
    with recorded_from(0 if records else 1 << 60):
        return find_remedy(elaborate(program), depths or {}, {}, frozenset(), effort=effort)


def deep(lanes: int, size: int) -> Program:
    with Program("deep") as program:
        for lane in range(lanes):
            sink(f"y_{lane}", fork_join(f"l{lane}", size=size, relays=0, count=2 * size))
    return program


class TestNetworks:
    @FEWER
    @given(networks(merging=False))
    def test_remedies_by_record_equal_remedies_by_runs(self, network: Network) -> None:
        by_runs = found(network.program, network.depths, records=False)
        by_record = found(network.program, network.depths, records=True)

        event(f"{len(by_runs.depths)} depths")
        assert by_runs == replace(by_record, trials=by_runs.trials)

    @FEWER
    @given(networks(merging=False))
    def test_remedies_hold_in_the_model(self, network: Network) -> None:
        with recorded_from(0):
            test_random.check(network)

    @examples(quick=12, deep=100)
    @given(networks(merging=True))
    def test_remedies_with_merges_hold_in_the_model(self, network: Network) -> None:
        with recorded_from(0):
            test_random.check(network)

    @examples(quick=12, deep=100)
    @given(networks(merging=False))
    def test_remedies_complete_and_one_less_does_not(self, network: Network) -> None:
        remedy_ = found(network.program, network.depths, records=True)
        depths = network.depths | {depth.option: depth.after for depth in remedy_.depths}
        if remedy_.initial or not remedy_.depths:
            return
        event("a remedy")
        completed = simulate(network.program, depths=depths)
        assert ("completed", remedy_.cycles) == (completed.status, completed.cycles)
        for depth in remedy_.depths:
            less = depths | {depth.option: depth.after - 1}
            stuck = simulate(network.program, depths=less, on_deadlock="describe").deadlock
            assert stuck is not None
            assert depth.rejected_cycle == stuck["cycle"]


@contextmanager
def compared_growth() -> Iterator[list[tuple[list[str], list[str]]]]:
    at_a_glance = Growth._at_a_glance
    noted: list[tuple[list[str], list[str]]] = []

    def compared(growth: Growth) -> list[Channel] | None:
        full = at_a_glance(growth)
        if full is not None:
            ways = full, growth._in_full()
            found_so, expected = (sorted(each.name for each in way) for way in ways)
            noted.append((found_so, expected))
        return full

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Growth, "_at_a_glance", compared)
        yield noted


class TestGrowth:
    @examples(quick=12, deep=100)
    @given(networks(merging=True))
    def test_growth_of_networks_is_equal_both_ways(self, network: Network) -> None:
        with compared_growth() as noted:
            found(network.program, network.depths, records=False)
        event(f"{len(noted)} stops at a glance")

        assert [] == [(found_so, expected) for found_so, expected in noted if found_so != expected]

    @pytest.mark.parametrize("order", [1, -1])
    def test_growth_of_rings_is_equal_both_ways(self, order: int) -> None:
        with Program("rings", channel_depth=1) as program:
            for ring in range(3):
                back = feedback(1)
                stream: Stream = back
                for number in range(4)[::order]:
                    name = f"r{ring}_{number}"
                    once = ("s0",) * 12 if number == 2 else ()
                    (stream,) = Script(("r0", "s0"), once=once, rounds=20, name=name)(stream)
                back.connect(stream)
        with compared_growth() as noted:
            search_ = Search(elaborate(program), {}, {}, 3_000)
            grown = search_.grow(search_.unchanged).grown

        assert 12 == len(grown)
        assert [] == [(found_so, expected) for found_so, expected in noted if found_so != expected]


class TestCases:
    @pytest.mark.parametrize("name", spread((name for name in CASES if "round" not in name), 4))
    def test_remedies_of_cases_equal_remedies_by_runs(self, name: str) -> None:
        case = CASES[name]
        by_record = found(case.build(), case.given, records=True)

        by_runs = found(case.build(), case.given, records=False)
        assert by_runs == replace(by_record, trials=by_runs.trials)

    def test_record_takes_fewer_runs(self) -> None:
        program = deep(lanes=9, size=9)
        by_record = found(program, records=True, effort=15_000)

        assert (True, "", 11) == (by_record.irreducible, by_record.why_not, by_record.trials)
        assert [9] * 9 == [depth.after for depth in by_record.depths]
        assert not found(program, records=False, effort=15_000).irreducible

    def test_remedy_beside_shared_memory_equals_remedy_by_runs(self) -> None:
        def build() -> Program:
            with Program("shared") as program:
                for lane in range(3):
                    tiles = LinearOffChipLoad(Tensor((96, 64)), tile=(16, 64), name=f"x{lane}")()
                    LinearOffChipStore(f"z{lane}")(tiles)
                    sink(f"y{lane}", fork_join(f"l{lane}", size=9, relays=1, count=27))
            return program

        by_record = found(build(), records=True)
        by_runs = found(build(), records=False)
        assert by_runs == replace(by_record, trials=by_runs.trials)
        assert by_record.trials < by_runs.trials


class TestEffort:
    def test_effort_used_up_keeps_depths_of_the_record(self) -> None:
        program = deep(lanes=9, size=9)
        whole = found(program, records=True)
        short = found(program, records=True, effort=6_000)

        tried = [depth.rejected_cycle is not None for depth in short.depths]
        assert {True, False} == set(tried)
        assert whole == replace(short, depths=whole.depths, trials=whole.trials)
        assert [9] * 9 == [depth.after for depth in short.depths]

    def test_merge_without_effort_left_proposes_every_channel(self) -> None:
        short = found(CASES["merge_in_a_loop"].build(), records=True, effort=400)

        assert (
            "none can be lowered by one as long as inputs come in the same order, but "
            "eager_merge_1 takes whichever comes first"
        ) == short.why_not
        assert not short.irreducible
        assert short.every_channel is not None

    def test_wrong_record_falls_back_to_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        by_runs = found(deep(lanes=2, size=5), records=False)
        monkeypatch.setattr(Replay, "completes", lambda *_: True)
        by_record = found(deep(lanes=2, size=5), records=True)

        assert by_runs == replace(by_record, trials=by_runs.trials)
