"""The claims of the text: all of them, each once, and what verdict which numbers get."""

from __future__ import annotations

from collections import Counter

import pytest
from paper.claims import Found, claim, compared, published_claims
from paper.printed import Printed
from paper.tiling import BATCH_64, BATCH_1024

from fabric import ConfigurationError, Verdict
from tests.programs.studies.made import STUDIES, made, opened


def test_every_claim_is_computed_once() -> None:
    """The 45 of the table are those of the studies, each of one."""
    table = Counter(published_claims())
    wanted = Counter({each: count for each, count in table.items() if each[1] != "section 5.5"})
    found = Counter(
        (each.text, each.location, each.published)
        for name in STUDIES
        if name != "figure_17"
        for each in opened(name).claims
    )
    # What figure 17 says of whole models is told by the same numbers, in other words.
    decoders = Counter(each.published for each in opened("figure_17").claims)

    assert 45 == table.total()
    assert wanted == Counter({each: found[each] for each in wanted})
    assert (
        Counter(value for _, place, value in table.elements() if place == "section 5.5") == decoders
    )
    # What is beyond the table says so.
    assert {"With equal resources", "Dynamic tiling breaks the Pareto-optimal frontier"} == {
        text.partition(":")[0] for text, _, _ in found - wanted
    }


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Found((1.8724,)), Verdict.REPRODUCED),
        (Found((1.8724,), {"equal FLOPs": 1.8701}), Verdict.REPRODUCED),
        (Found((1.8724,), {"equal FLOPs": 1.2155}), Verdict.UNEQUAL),
        (Found((1.8724,), {"all experts": 1.2, "active experts": 1.87}), Verdict.REPRODUCED),
        (Found((1.89,), {"equal FLOPs": 1.87}), Verdict.UNPUBLISHED),
        (Found((1.91,)), Verdict.CONTRADICTED),
        (Found((1.2155,)), Verdict.CONTRADICTED),
        (Found((1.8724,), unpublished="Whose runs, is not said."), Verdict.UNPUBLISHED),
    ],
)
def test_verdicts(found: Found, verdict: Verdict) -> None:
    """Of a claim of 1.87."""
    judgement = compared(found, Printed.parse("1.87"))

    assert verdict == judgement.verdict
    assert f"{found.values[0]:.4f}" == judgement.found
    assert all(how in judgement.note for how in found.equal)


def test_overheads() -> None:
    """What is in per cent is compared as a whole: 1.0633 and 1.05 are 1.3 % apart."""
    assert Verdict.UNPUBLISHED == compared(Found((6.33,)), Printed.parse("about 5%")).verdict
    assert Verdict.CONTRADICTED == compared(Found((9.0,)), Printed.parse("about 5%")).verdict


def test_no_such_claim() -> None:
    """A text that is not in the table, or there with several values, is refused."""
    with pytest.raises(LookupError, match="0 claims are 'It is fast'"):
        claim("It is fast", lambda _: Found((1.0,)))
    with pytest.raises(LookupError, match="2 claims are 'bars annotated'"):
        claim("bars annotated", lambda _: Found((1.0,)))


@pytest.mark.parametrize("name", ["figure_09", "figure_10", "figure_12", "figure_15", "figure_21"])
def test_points_that_did_not_complete(name: str) -> None:
    """A claim whose points are missing is not decided; it says which."""
    study = opened(name)
    result = made(study, lambda _: None)

    for each in study.claims:
        if each.text != "artifact run time":
            with pytest.raises(ConfigurationError, match="did not complete"):
                each.judge(result)


def test_comparisons_by_hand() -> None:
    """Static tiles of n rows take 1000 + n cycles and n bytes, of which all experts have 4n."""
    result = made(
        opened("equal_resources"),
        lambda setting: {
            "cycles": 1000 + setting["tile_n"]
            if setting["tiling"] == "static"
            else 500 * setting["flops_per_cycle"] // 4096,
            "on_chip_requirement_artifact_bytes": 4 * setting.get("tile_n", 32),
            "extra.on_chip_requirement_artifact_active_bytes": setting.get("tile_n", 32),
        },
    )

    speedup = BATCH_64["Qwen b64 dynamic vs tile=8 speedup"](result)
    assert (1008 / 781,) == speedup.values
    assert [1008 / 500] == list(speedup.equal.values())
    saving = BATCH_64["Qwen b64 on-chip saving vs tile=64"](result)
    assert (4 * 64 / 32,) == saving.values
    assert [2.0, 2.0] == list(saving.equal.values())
    assert {} == BATCH_64["Mixtral b64 on-chip memory saving vs tile=32"](result).equal
    # The smallest tile has the fewest cycles and the fewest bytes: it alone is on the front.
    distance = BATCH_1024["PID Mixtral b1024"](result)
    assert (max(1016 / 781, 4 * 16 / 32),) == distance.values
    assert [1016 / 500] == list(distance.equal.values())
