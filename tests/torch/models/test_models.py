from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import pytest
from layers.torch_parts import LanguageModelPart, decoding, prefilling
from layers.torch_sizes import FAMILIES, TINY, ModelName
from layers.torch_weights import model_of

from fabric import Report, simulate
from operators.torch import Schedule, from_torch
from tests.profiles import crossed, spread

Phase = Literal["prefill", "decode"]
PHASES = get_args(Phase)

SCHEDULES = {
    "default": Schedule(),
    "rows stay": Schedule(
        tile_rows=4, tile_cols=8, tile_inner=8, tile_keys=4, order="row", ragged="static"
    ),
    "sums stay": Schedule(
        tile_rows=3,
        tile_cols=16,
        tile_inner=16,
        tile_keys=2,
        order="output",
        regions=2,
        attention_regions=2,
        on_chip_bytes=2048,
    ),
}
"""Tiles that hold a whole tiny model, that divide it, and that do not divide it."""


@cache
def called(name: ModelName, phase: Phase, dtype: str) -> tuple[Any, tuple[Any, ...]]:
    model = model_of(FAMILIES[name], TINY[name], range(2), dtype, weights=None, seed=1)
    if phase == "prefill":
        given = prefilling(model, "model", 2, 7, seed=2)
    else:
        given = decoding(model, "model", np.array([5, 1, 9]), seed=2)
    args = given.given, given.positions, given.mask, *given.past
    return LanguageModelPart(model, "model"), args


def run(name: ModelName, phase: Phase, dtype: str, schedule: str, mode: str) -> Report:
    module, args = called(name, phase, dtype)
    return simulate(from_torch(module, args, schedule=SCHEDULES[schedule]), mode=mode)


@pytest.mark.parametrize(
    ("name", "phase", "schedule"), crossed([*product(FAMILIES, PHASES)], [*SCHEDULES], 1)
)
def test_tiny_model_is_verified(name: ModelName, phase: Phase, schedule: str) -> None:
    report = run(name, phase, "float32", schedule, "functional")

    assert report.verified, report.verification


@pytest.mark.parametrize(
    ("name", "phase"), spread(zip(FAMILIES, 3 * ("decode", "prefill"), strict=True), 2)
)
def test_tiny_model_in_bfloat16_is_verified(name: ModelName, phase: Phase) -> None:
    report = run(name, phase, "bfloat16", "default", "functional")

    assert report.verified, report.verification
