"""Modules of `programs` can be imported, and modules are traced once."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.programs.loading import PROGRAMS

sys.path.append(str(PROGRAMS))


@pytest.fixture(autouse=True, scope="module")
def traced_once() -> Any:
    importing = importlib.import_module("operators.torch.from_torch")
    kept: dict[int, tuple[object, object]] = {}

    def found(
        module: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        dynamic_shapes: object,
    ) -> object:
        if id(module) not in kept:
            kept[id(module)] = module, capture(module, args, kwargs, dynamic_shapes)
        return kept[id(module)][1]

    with pytest.MonkeyPatch.context() as patch:
        capture = importing.capture
        patch.setattr(importing, "capture", found)
        yield
