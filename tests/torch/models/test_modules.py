from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from fabric import simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from tests.profiles import crossed
from tests.torch.models.modules import MODULES

SCHEDULES = {
    "default": Schedule(),
    "small tiles": Schedule(tile_rows=2, tile_cols=4, tile_inner=8, order="row"),
    "sums stay": Schedule(tile_rows=4, tile_cols=8, tile_inner=4, order="output"),
}


@cache
def called(name: str) -> tuple[Any, tuple[Any, ...]]:
    made, shapes = MODULES[name]
    torch.manual_seed(len(name))
    module = made().eval()
    return module, tuple(torch.randn(shape) for shape in shapes)


@pytest.mark.parametrize(("name", "schedule"), crossed([*MODULES], [*SCHEDULES], 1))
def test_small_module_is_verified_for_every_schedule(name: str, schedule: str) -> None:
    module, args = called(name)

    report = simulate(from_torch(module, args, schedule=SCHEDULES[schedule]), mode="functional")

    assert report.verified, report.verification
