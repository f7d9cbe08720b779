from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from whole.parts import PARTS

from fabric import Verdict
from fabric.graph.loading.program_file import executed
from tests.programs.loading import PROGRAMS
from tests.programs.studies.made import made, opened

STUDIES = ("streamtensor_gpt2", "torch_models")


def seconds(setting: Mapping[str, Any]) -> Mapping[str, float]:
    each = 0.01 if setting["part"] == "ends" else 0.001
    if setting.get("hardware.hbm.requests_per_bundle") == 16:
        each /= 10
    return {"seconds": each, "joules": 1000 * each}


@pytest.mark.parametrize("name", STUDIES)
def test_points_are_different_and_name_parameters(name: str) -> None:
    study = opened(name)
    known = inspect.signature(executed(study.program or "").build).parameters
    points = [study.whole(setting) for setting in study.space]

    assert len(points) == len({tuple(sorted(each.items(), key=str)) for each in points})
    varied = {each for each in study.space.values if not each.startswith("hardware.")}
    assert set(known) >= {*study.fixed, *varied}
    for file in study.space.values.get("routing", ()):
        assert file is None or Path(str(file)).is_file()


def test_parts_cover_all_layers() -> None:
    executed(PROGRAMS / "torch_model.py")  # the folder stays on Python's path from here on
    from layers.torch_sizes import FULL, alike, layers_of

    assert set(FULL) == set(PARTS)
    for model in FULL:
        parts = PARTS[model]
        layers = [each for first in parts for each in alike(FULL[model], first)]
        assert sorted(layers) == list(range(layers_of(FULL[model])))
        assert list(parts.values()) == [len(alike(FULL[model], first)) for first in parts]


def test_claims_add_up_parts() -> None:
    result = made(opened("streamtensor_gpt2"), seconds)

    first, speed, latency = (each.judge(result) for each in result.study.claims[:3])

    assert "34 to 3.4 ms" == first.found
    assert "29.41 to 294.1 tokens/s" == speed.found
    assert "1122 to 112.2 ms" == latency.found
    assert "0.196 and 1.96 tokens per joule" in speed.note
    assert Verdict.UNPUBLISHED == speed.verdict
    assert "199.51 tokens/s" == result.study.claims[1].published


def test_rates_of_models_add_up_parts() -> None:
    study = opened("torch_models")
    rates = executed(PROGRAMS / "studies/torch_models.py").rates
    priced = made(study, seconds)
    unpriced = made(study, lambda setting: {"seconds": seconds(setting)["seconds"]})

    assert rates(priced, "gpt2", "prefill") == pytest.approx((512 / 0.034, 512 / 34))
    assert rates(priced, "gemma3", "decode") == pytest.approx((16 / 0.036, 16 / 36))
    assert rates(unpriced, "llama", "decode")[0] == pytest.approx(16 / 0.032)
    for result, label in ((priced, " 15,059 tokens/s, 15.1 tokens/J"), (unpriced, "no price")):
        figure = Figure()
        study.pictures[0].draw(result, figure)
        assert label in figure.axes[0].texts[0].get_text()
