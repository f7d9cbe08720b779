"""Calls with checked arguments bind their arguments as Python does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from fabric import ProgramError
from fabric.graph.arguments.described import checked


def _plain(a: int, b: int = 2) -> Any:
    return a, b


def _by_place(a: int, b: int = 2, /, c: int = 3) -> Any:
    return a, b, c


def _by_name(a: int, *, b: int, c: int = 3) -> Any:
    return a, b, c


def _rest(a: int, *b: int, c: int = 3) -> Any:
    return a, b, c


def _named(a: int = 1, /, **b: int) -> Any:
    return a, b


def _all(a: int, b: int = 2, /, c: int = 3, *d: int, e: int, **f: int) -> Any:
    return a, b, c, d, e, f


@pytest.mark.parametrize("function", [_plain, _by_place, _by_name, _rest, _named, _all])
def test_checked_call_binds_arguments_as_python_does(function: Callable[..., Any]) -> None:
    call = checked(function)
    for count in range(5):
        for names in (n for size in range(4) for n in combinations("abcdefg", size)):
            arguments, named = range(10, 10 + count), {name: ord(name) for name in names}
            try:
                expected = function(*arguments, **named)
            except TypeError:
                with pytest.raises(ProgramError):
                    call(*arguments, **named)
            else:
                assert expected == call(*arguments, **named)
