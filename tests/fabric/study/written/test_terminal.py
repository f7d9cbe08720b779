from __future__ import annotations

from collections.abc import Callable

import pytest

from fabric.display.terminal import plain_text
from tests.fabric.study.written.made import RESULTS


def printed(name: str, width: int) -> str:
    return plain_text(RESULTS[name]().sheet(), width) + "\n"


@pytest.mark.parametrize("name", ["design", "paper", "over"])
def test_study_is_printed_as_in_the_snapshot(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", printed(name, 140))


@pytest.mark.parametrize("name", RESULTS)
def test_every_study_fits_a_narrow_terminal(name: str) -> None:
    text = printed(name, 60)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 60
