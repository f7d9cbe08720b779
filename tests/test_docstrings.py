from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["fabric.runs.outputs", "fabric.analysis.trace.opened"])
def test_examples_in_docstrings_print_what_they_show(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(module))

    assert 0 == failed
    assert tried
