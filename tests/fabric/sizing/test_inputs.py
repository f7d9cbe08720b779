from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import FabricError
from fabric.explore.sizing.running import held_out, programs_of
from tests.fabric.sizing.problems import cycles_of

MOE = Path("programs/moe.py")
TINY = ["model=tiny", "batch=8"]


def test_points_over_a_seed_have_their_own_data() -> None:
    found = programs_of(MOE, TINY, ["seed=1,2"])

    for seed, (name, program) in enumerate(found.items(), 1):
        (alone,) = programs_of(MOE, TINY, [f"seed={seed}"]).values()
        assert name == f"seed={seed}"
        assert cycles_of(alone, {}) == cycles_of(program, {})


@pytest.mark.parametrize(
    ("parameters", "vary", "message"),
    [
        ([], [], "defines no study"),
        (["depth.accum_1.0=3"], ["seed=1,2"], r"^depth\.accum_1\.0 is stated: sizing finds"),
        ([], ["depth.accum_1.0=3,4"], r"^depth\.accum_1\.0 is stated: sizing finds"),
        (["seed=3"], ["seed=1,2"], "seed is an input and fixed"),
        ([], ["seeds=1,2"], r"takes no parameter seeds"),
        (
            [],
            ["regions=2,4"],
            r"^regions=2 has [\d,]+ channels and regions=4 has [\d,]+ channels: "
            r"regions=2 alone has merge_0\.2, merge_0\.3, merge_1\.2 and 1 more; "
            r"regions=4 alone has .*: expected inputs for which the program has the same channels$",
        ),
    ],
)
def test_points_that_differ_in_wiring_are_refused(
    parameters: list[str], vary: list[str], message: str
) -> None:
    with pytest.raises(FabricError, match=message):
        programs_of(MOE, [*TINY, *parameters], vary)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_held_out_points_are_those_asked_for_and_never_the_first(drawn: tuple[int, int]) -> None:
    total, count = drawn
    points = {f"seed={index}": index for index in range(total)}

    sized, others = held_out(points, count)

    assert len(others) == count
    assert sized | others == points
    assert list(sized) == [name for name in points if name in sized]
    assert "seed=0" in sized
    assert others.keys() <= held_out(points, min(count + 1, total - 1))[1].keys()
