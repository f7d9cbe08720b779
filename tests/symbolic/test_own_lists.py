"""Sizes that a program's own lists decide, before it runs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fabric import Program, simulate
from fabric.analysis.symbolic.check import check
from operators import (
    CacheReadAddresses,
    Consumer,
    FilterLastTile,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Metadata,
    Partition,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    Repeat,
    Selectors,
)


def test_own_lists() -> None:
    """Sizes that the program's own lists decide are known: what is computed is what a run moves."""
    with Program("lists") as program:
        rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((6, 4)), tile=(1, 4))())
        choice = np.array([[0, 2], [2, 1], [2, 0], [0, 1], [2, 1], [0, 2]])
        route = Flatten(0, 1)(Selectors(choice, width=4)())
        for number, each in enumerate(Partition(4)(rows, route)):
            LinearOffChipStore(f"y{number}")(Promote(0)(each))
        lists = RaggedIntegers([[0, 3], [], [7, 1, 2]])()
        LinearOffChipStore("z")(lists)

    checked = check(program, {}, data=True)
    assert {str(symbol): size for symbol, size in checked.sizes.items()} == {
        "D_selectors_1[0]": 4,
        "D_selectors_1[1]": 3,
        "D_selectors_1[2]": 5,
        "D_selectors_1[3]": 0,
        "D_ragged_integers_1~": Fraction(5, 3),
    }
    report = simulate(program)
    assert not report.warnings
    known = checked.as_json()["metrics"]
    assert isinstance(known, dict)
    assert known["paper"]["off_chip_traffic_bytes"] == report.off_chip_traffic_bytes


def test_lengths_of_requests() -> None:
    """Addresses and selectors that lengths decide are as many as their mean says."""
    lengths = np.array([3, 0, 2])
    with Program("caches") as program:
        requests, tiles = Metadata(np.arange(3))(), Metadata(lengths)()
        rows = RandomOffChipLoad(np.ones((12, 4)), tile=(1, 4))(
            CacheReadAddresses(4)(requests, tiles)
        )
        LinearOffChipStore("y")(rows)
        Consumer()(FilterLastTile()(tiles))

    checked = check(program, {}, data=True)
    assert {str(symbol): size for symbol, size in checked.sizes.items()} == {
        "D_cache_read_addresses_1~": Fraction(5, 3),
        "D_filter_last_tile_1~": Fraction(5, 3),
    }
    known = checked.as_json()["metrics"]
    assert isinstance(known, dict)
    assert known["paper"]["off_chip_traffic_bytes"] == simulate(program).off_chip_traffic_bytes


def test_a_list_is_not_what_comes() -> None:
    """Where an operator lies between the list and who follows it, the list decides nothing."""
    with Program("filtered") as program:
        route = Flatten(0, 1)(Selectors(np.array([[0], [1]]), width=2)())
        twice = Flatten(0, 1)(Repeat(2)(route))
        rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4))())
        for each in Partition(2)(rows, twice):
            Consumer()(each)
    assert not check(program, {}, data=True).sizes


def test_empty_lists() -> None:
    """Of no list at all, and of no requests, the mean is 0; of a list without numbers, too."""
    with Program("empty") as program:
        Consumer()(RaggedIntegers([])())
        Consumer()(RaggedIntegers([[]])())
        nothing = Metadata(np.zeros(0, np.int64))()
        Consumer()(CacheReadAddresses(4)(nothing, nothing))
        # Lengths that come from elsewhere have no mean that is known.
        later = Repeat(1)(Metadata(np.array([2]))())
        Consumer()(FilterLastTile()(later))
    assert {str(symbol): size for symbol, size in check(program, {}, data=True).sizes.items()} == {
        "D_ragged_integers_1~": 0,
        "D_ragged_integers_2~": 0,
        "D_cache_read_addresses_1~": 0,
    }
