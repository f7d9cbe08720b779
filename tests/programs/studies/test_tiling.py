from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from paper.tiling import Design, front, improvement
from paper.workloads import QWEN_64

AMOUNTS = st.integers(1, 30)
DESIGNS = st.builds(Design, cycles=AMOUNTS, on_chip_bytes=AMOUNTS)


def dominates(one: Design, other: Design) -> bool:
    return one != other and one.cycles <= other.cycles and one.on_chip_bytes <= other.on_chip_bytes


@given(st.lists(DESIGNS, min_size=1))
def test_front_equals_its_definition(designs: list[Design]) -> None:
    alone = [each for each in designs if not any(dominates(other, each) for other in designs)]

    assert {(each.cycles, each.on_chip_bytes) for each in alone} == {
        (each.cycles, each.on_chip_bytes) for each in front(designs)
    }
    assert len(front(designs)) == len(set(alone))


@given(st.lists(DESIGNS, min_size=1), DESIGNS)
def test_improvement_equals_its_definition(designs: list[Design], ours: Design) -> None:
    distance = improvement(QWEN_64).measure(dict(enumerate(designs)), ours)
    as_good = [
        each
        for each in designs
        if each.cycles <= ours.cycles and each.on_chip_bytes <= ours.on_chip_bytes
    ]

    assert (distance > 1) == (not as_good)
    assert distance == min(
        max(each.cycles / ours.cycles, each.on_chip_bytes / ours.on_chip_bytes) for each in designs
    )
