from __future__ import annotations

import pytest

from tests.docs.sizes import PAGE, PROGRAMS, Sized, row
from tests.profiles import spread


def _check(program: Sized) -> None:
    assert row(program) in PAGE.read_text(encoding="utf-8").splitlines()


_SHORT = [each for each in PROGRAMS if not each.is_long]


@pytest.mark.parametrize("program", spread(_SHORT, 1), ids=str)
def test_row_of_a_short_program_is_what_size_prints(program: Sized) -> None:
    _check(program)


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.is_long], ids=str)
def test_row_of_a_long_program_is_what_size_prints(program: Sized) -> None:
    _check(program)


def test_page_has_every_program() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    assert len(rows) == len(PROGRAMS) + 1
