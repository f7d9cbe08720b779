"""Inputs that are kept apart, to try on them what was found with the others."""

from __future__ import annotations

from typing import Final

from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import counted

__all__ = ["places_apart"]

_GOLDEN: Final = 0x9E3779B97F4A7C15
_TURN: Final = 1 << 64
"""Steps of the golden section of a turn fall evenly between those before, and repeat no pattern."""


def places_apart(total: int, count: int, *, said: str, what: str, use: str) -> frozenset[int]:
    """Return which ``count`` of ``total`` inputs are kept apart.

    They are spread over all inputs, whatever the order in which these vary; the first one is never
    among them, and of two counts the larger one keeps apart what the smaller one does.

    Args:
        total: of inputs.
        count: of those kept apart.
        said: how it was asked for, for the sentence.
        what: the inputs are called.
        use: what the others are for.

    Raises:
        ConfigurationError: that leaves none of the others.
    """
    if not 0 <= count < total:
        raise ConfigurationError(
            f"{said}: of {counted(total, what)} at least one is to be {use}: expected "
            + (f"at most {total - 1:,}" if count >= total else "0 or more")
        )
    order = sorted(range(total), key=lambda index: -(index * _GOLDEN % _TURN))
    return frozenset(order[:count])
