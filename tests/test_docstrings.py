"""Examples in docstrings of the library run, and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["fabric.runs.outputs", "fabric.analysis.trace.opened"])
def test_examples(module: str) -> None:
    """They are sessions of Python."""
    failed, tried = doctest.testmod(importlib.import_module(module))

    assert 0 == failed
    assert tried
