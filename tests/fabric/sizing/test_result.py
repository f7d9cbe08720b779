from __future__ import annotations

from collections.abc import Callable

import pytest

from fabric.display.terminal import plain_text
from fabric.explore.sizing import result


def channel(
    option: str, depth: int, element_bytes: int = 64, before: int = 2
) -> result.SizedChannel:
    return result.SizedChannel(
        option=option,
        name=f"from -> {option}",
        element_bytes=element_bytes,
        elements=9,
        depth_before=before,
        depth=depth,
        least_depth=1,
        binds="goal" if depth > 1 else "one slot",
        group="",
    )


MANY = result.Sizing(
    program="one",
    goal="same-cycles",
    method="search",
    objective="slots",
    channels=(
        channel("map_1.0", 1, element_bytes=8),
        channel("map_2.0", 3),
        channel("map_3.0", 3),
        channel("map_4.0", 5, before=7),
    ),
    cost_before=1_848,
    cost=1_000,
    lower_bound=500,
    truth="validated",
    keeps=False,
    reasons=("the memory is shared", "a merge takes what comes first"),
    inputs=(
        result.Input("seed=0", None, 1_100, None, None),
        result.Input("seed=1", 1_300, 1_200, 1_250, 1_260),
    ),
    methods=(
        result.MethodTotal("search", 1_000, 1_260, keeps=False, input="seed=1"),
        result.MethodTotal("high-water", 1_500, None, keeps=False, input="seed=0"),
    ),
    held_out=(
        result.HeldOut("seed=2", 1_000, 1_000),
        result.HeldOut("seed=3", 1_000, 1_001),
        result.HeldOut("seed=4", 1_000, None),
        result.HeldOut("seed=5", None, 9_999),
    ),
    repeats=4,
    settled=result.settled([result.Answer({"a": 1}, (10 * n, 20 * n + 1)) for n in range(1, 5)]),
    is_placed=True,
)


def printed(sizing: result.Sizing, width: int) -> str:
    return plain_text(sizing.sheet(2), width) + "\n"


@pytest.mark.parametrize(("name", "width"), [("wide", 120), ("narrow", 90)])
def test_sizing_of_several_inputs_is_printed_as_in_the_snapshot(
    name: str, width: int, golden: Callable[[str, str], None]
) -> None:
    golden(f"{name}.txt", printed(MANY, width))
