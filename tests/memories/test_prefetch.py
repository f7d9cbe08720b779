from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Hardware, Program
from fabric.extend import BankedDescription
from fabric.graph.hardware.address_space import Burst
from fabric.graph.loading.program_file import load_program
from fabric.messages.errors import Refusal
from fabric.messages.place import Place
from fabric.timing.engine.unit import MemoryUnit, Unit
from fabric.timing.memories.banked import BankedMemory
from tests.compiled.both import both
from tests.memories.random_memories import descriptions
from tests.outcomes import outcome_under_every_schedule
from tests.profiles import spread
from tests.programs.loading import PROGRAMS

FAR = 1 << 40


class View(NamedTuple):
    announced: bool
    gaps: list[int]
    bursts: list[Burst]


class Asked(NamedTuple):
    burst: Burst
    known: int
    asked: int
    answered: int


@st.composite
def _views(draw: st.DrawFn) -> View:
    rows, row_bytes = draw(st.tuples(st.integers(1, 3), st.integers(1, 300)))
    pitch = draw(st.sampled_from([row_bytes, 1 << 10, 1 << 13]))
    places = draw(st.lists(st.integers(0, 63), min_size=1, max_size=8))
    bursts = [Burst(place * 96, rows, row_bytes, pitch, write=False) for place in places]
    gaps = [draw(st.sampled_from([0, 1, 2, 9, 70, 500])) for _ in bursts]
    return View(draw(st.sampled_from([True, True, False])), gaps, bursts)


def _units(count: int) -> list[Unit]:
    place = Place("program.py", 1)
    return [MemoryUnit(f"u{each}", each, place, bytes_per_cycle=64) for each in range(count)]


def _driven(
    hbm: BankedDescription,
    views: Sequence[Sequence[View]],
    steps: Sequence[int],
    *,
    backwards: bool,
) -> tuple[BankedMemory, list[list[Asked]]]:
    units = _units(len(views))
    memory = BankedMemory(hbm, units, [])
    known = [0] * len(units)
    found: list[list[Asked]] = [[] for _ in units]

    def script(unit: Unit, its: Sequence[View]) -> Iterator[Burst]:
        for view in its:
            known[unit.index] = unit.now if view.announced else -1
            if view.announced:
                memory.announce(unit, iter(view.bursts))
            for gap, burst in zip(view.gaps, view.bursts, strict=True):
                unit.now += gap
                yield burst

    scripts = [script(unit, its) for unit, its in zip(units, views, strict=True)]
    asked: dict[Unit, tuple[Burst, int]] = {}

    def ask(unit: Unit) -> None:
        burst = next(scripts[unit.index], None)
        if burst is not None:
            asked[unit] = burst, unit.now
            memory.submit(unit, burst)

    for unit in reversed(units) if backwards else units:
        ask(unit)
    horizon, turns = 0, itertools.cycle(steps)
    while memory.pending:
        horizon += next(turns)
        for unit in reversed(memory.advance(horizon)):
            burst, since = asked.pop(unit)
            assert memory.served(unit) == 0
            found[unit.index].append(Asked(burst, known[unit.index], since, unit.now))
            ask(unit)
    assert not asked
    return memory, found


# The same requests without prefetching, each from its own client. A request is handed over one
# cycle after the last request, if it is at most prefetch_requests ahead of the requested tile.
def _expected(hbm: BankedDescription, found: Sequence[Sequence[Asked]]) -> list[list[int]]:
    handed: list[list[list[tuple[int, Burst]]]] = []
    for its in found:
        cycle, tiles = 0, []
        for number, tile in enumerate(its):
            requests = [
                tile.burst.address + row * tile.burst.pitch_bytes + column
                for row in range(tile.burst.rows)
                for column in range(0, tile.burst.row_bytes, hbm.request_bytes)
            ]
            same = [each for each in range(number) if its[each].known == tile.known]
            first = number if tile.known < 0 or not same else same[0]
            size, parts = len(requests), []
            for at, address in enumerate(requests):
                # The number of tiles of the view that have to be requested first.
                beyond = (number - first) * size + at + 1 - hbm.prefetch_requests
                tiles_asked = number - first + 1 if tile.known < 0 else max(0, -(-beyond // size))
                since = its[first + tiles_asked - 1].asked if tiles_asked else tile.known
                cycle = max(cycle + 1, since + 1)
                parts.append((cycle, Burst(address, 1, 1, 1, write=False)))
            tiles.append(parts)
        handed.append(tiles)
    return _answers(replace(hbm, prefetch_requests=0), found, handed)


def _answers(
    hbm: BankedDescription,
    found: Sequence[Sequence[Asked]],
    handed: list[list[list[tuple[int, Burst]]]],
) -> list[list[int]]:
    units = _units(sum(len(parts) for tiles in handed for parts in tiles))
    memory = BankedMemory(hbm, units, [])
    free = iter(units)
    of_tiles = [[[(next(free), *part) for part in parts] for parts in tiles] for tiles in handed]
    parts = [part for tiles in of_tiles for each in tiles for part in each]
    for unit, cycle, burst in sorted(parts, key=lambda part: part[1]):
        unit.now = cycle - 1
        while memory.pending and memory.advance(unit.now):
            pass
        memory.submit(unit, burst)
    while memory.pending:
        memory.advance(FAR)
    return [
        [
            max(tile.asked + 1, *(unit.now for unit, _, _ in each))
            for tile, each in zip(its, tiles, strict=True)
        ]
        for its, tiles in zip(found, of_tiles, strict=True)
    ]


@given(
    hbm=descriptions(),
    prefetch=st.sampled_from([1, 2, 3, 7, 12, 40]),
    views=st.lists(st.lists(_views(), max_size=3), min_size=1, max_size=4),
    steps=st.lists(st.integers(1, 60), min_size=1),
)
def test_prefetched_tiles_are_answered_as_single_requests(
    hbm: BankedDescription, prefetch: int, views: list[list[View]], steps: list[int]
) -> None:
    hbm = replace(hbm, prefetch_requests=prefetch, requests_per_bundle=1)
    memory, found = _driven(hbm, views, steps, backwards=False)
    again, otherwise = _driven(hbm, views, [FAR], backwards=True)

    assert found == otherwise
    assert _expected(hbm, found) == [[each.answered for each in its] for its in found]
    assert [sum(each.burst.requests(hbm.request_bytes) for each in its) for its in found] == [
        each.requests for each in memory.counters().clients
    ]
    requests = sum(each.burst.requests(hbm.request_bytes) for its in found for each in its)
    assert requests * hbm.request_bytes == memory.bytes_moved == again.bytes_moved
    assert sum(len(view.bursts) for its in views for view in its) == sum(map(len, found))


def test_tile_that_differs_from_the_announced_one_is_refused() -> None:
    (unit,) = units = _units(1)
    memory = BankedMemory(BankedDescription(prefetch_requests=4), units, [])
    memory.announce(unit, iter([Burst(0, 1, 64, 64, write=False)]))
    with pytest.raises(Refusal, match=r"address=64, .* is submitted: expected .*address=0, "):
        memory.submit(unit, Burst(64, 1, 64, 64, write=False))


@pytest.mark.parametrize(("writers", "most"), [(275, 951), (276, 950)])
def test_too_many_prefetching_readers_are_refused(writers: int, most: int) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BankedMemory(BankedDescription(prefetch_requests=1024), _units(1100), _units(writers))
    assert raised.value.message == (
        "prefetch_requests is 1024 in a program with 1,100 reading operators: "
        f"expected at most {most}"
    )


@pytest.mark.parametrize("name", spread(["simplified_moe", "ragged_attention", "swiglu"], 1))
@pytest.mark.parametrize("prefetch", [20, 500])
def test_reports_are_equal_in_both_engines_and_all_schedules(
    name: str, prefetch: int, tmp_path: Path
) -> None:
    hardware = Hardware(hbm=BankedDescription(prefetch_requests=prefetch))

    def build() -> Program:
        return load_program(PROGRAMS / f"{name}.py", [], hardware).program

    expected = outcome_under_every_schedule(build, tmp_path, mode="timing", engine="tasks")
    compiled = both(build, tmp_path)
    assert compiled.compiled > 0
    assert expected["json"] == compiled.outcome["json"]
