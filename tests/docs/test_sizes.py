"""The table of channel sizes is what ``size`` says."""

from __future__ import annotations

import pytest

from tests.docs.sizes import PAGE, PROGRAMS, Sized, row
from tests.profiles import spread


def _check(program: Sized) -> None:
    assert row(program) in PAGE.read_text(encoding="utf-8").splitlines()


_SHORT = [each for each in PROGRAMS if not each.is_long]


@pytest.mark.parametrize("program", spread(_SHORT, 4), ids=str)
def test_row(program: Sized) -> None:
    """Of programs that are sized in a moment."""
    _check(program)


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.is_long], ids=str)
def test_long_row(program: Sized) -> None:
    """Of the others."""
    _check(program)


def test_all() -> None:
    """Every program has its line."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    assert len(rows) == len(PROGRAMS) + 1
