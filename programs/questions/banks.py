"""Does the order of tiles and regions survive a memory with banks?

Every design of a layer of experts runs on the flat memory and on HBM2 with banks and the same peak.
This is a small layer; ``banks_qwen.py`` and ``banks_mixtral.py`` have published layers.
``docs/pages/reference/results.md`` has the answer.

Run: python -m fabric study programs/questions/banks*.py -o banks
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from beyond.savings import PROGRAMS

from fabric import Findings, Outcome, Study, StudyTable, grid

MODEL: Final = "hardware.hbm.model"
SMALL: Final[Mapping[str, str | int]] = {
    "model": "tiny",
    "batch": 32,
    "tile_f": 32,
    "channel_depth": 1024,
}


def study(
    name: str = "a small layer",
    fixed: Mapping[str, str | int] = SMALL,
    tiles: Sequence[int] = (4, 8, 16),
    regions: Sequence[int] = (8, 4, 2),
) -> Study:
    tilings = grid(tiling=["static"], tile_n=tiles) + grid(tiling=["dynamic"])
    return Study(
        program=PROGRAMS / "moe.py",
        question=f"Does the order of tiles and regions of {name} survive a memory with banks?",
        fixed=fixed,
        space=tilings * grid(regions=regions) * grid({MODEL: ["flat", "banked"]}),
        tables=(
            StudyTable(
                "Pairs of designs",
                ("pairs of", "pairs", "in another order", "flat, up to %", "banks, up to %"),
                swapped_pairs,
                "The number of pairs in another order on banks, and the largest difference of "
                "cycles in such a pair.",
            ),
            StudyTable(
                "Designs on both memories",
                ("tiling", "tile_n", "regions", "flat", "banks", "ratio", "data %", "hits %"),
                designs,
                "Cycles, the share of bus cycles that carry data, and the share of requests to an "
                "open row.",
            ),
        ),
    )


def swapped_pairs(found: Findings) -> Iterator[tuple[str | int | float, ...]]:
    """Yield the number of pairs of designs that banks put in another order, by common part."""
    every = [*combinations(both_memories(found), 2)]
    for name, shared in (
        ("tiles, same regions", ("regions",)),
        ("regions, same tiles", ("tiling", "tile_n")),
        ("all designs", ()),
    ):
        pairs = [
            [[each.numbers["cycles"] for each in design] for design in (one, other)]
            for one, other in every
            if all(one[0].setting.get(key) == other[0].setting.get(key) for key in shared)
        ]
        swapped = [
            (flat, banked)
            for (flat, banked) in (zip(*pair, strict=True) for pair in pairs)
            if (flat[0] - flat[1]) * (banked[0] - banked[1]) < 0
        ]
        flat_percent, banked_percent = (
            max((100 * (max(of[n]) / min(of[n]) - 1) for of in swapped), default=0.0)
            for n in range(2)
        )
        yield name, len(pairs), len(swapped), round(flat_percent, 1), round(banked_percent, 1)


def designs(found: Findings) -> Iterator[tuple[str | int | float | None, ...]]:
    for flat, banked in sorted(both_memories(found), key=lambda each: each[1].numbers["cycles"]):
        numbers = banked.numbers
        hits, *others = (numbers[f"hbm.row_{end}"] for end in ("hits", "misses", "conflicts"))
        bus = sum(value for name, value in numbers.items() if name.endswith("_bus_cycles"))
        yield (
            *(flat.setting.get(name) for name in ("tiling", "tile_n", "regions")),
            *(flat.numbers["cycles"], numbers["cycles"]),
            round(numbers["cycles"] / flat.numbers["cycles"], 3),
            round(100 * numbers["hbm.data_bus_cycles"] / bus, 1),
            round(100 * hits / (hits + sum(others)), 1),
        )


def both_memories(found: Findings) -> list[tuple[Outcome, Outcome]]:
    """Return both outcomes of each design that completed on both memories, flat first."""
    pairs = zip(found.matching(**{MODEL: "flat"}), found.matching(**{MODEL: "banked"}), strict=True)
    return [pair for pair in pairs if all(each.status == "completed" for each in pair)]
