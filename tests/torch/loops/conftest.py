"""The fixture that iterates loop states to their fixed point."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = importlib.import_module("tests.torch.loops.rounds").Rounds()
    for name in ("cells", "rolling"):
        module = importlib.import_module(f"operators.torch.loops.{name}")
        for call in ("states", "behind", "each"):
            monkeypatch.setattr(module, call, getattr(found, call))
        monkeypatch.setattr(module, "new_loop", lambda: next(found.numbers))
    return found
