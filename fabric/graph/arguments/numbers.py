"""Reads numbers from texts, such as arguments of the command line and values of a study."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
"""A pattern of the texts that ``number_of`` reads."""

_NUMBER: Final = re.compile(NUMBER, re.ASCII)

_LONGEST: Final = 999
"""Digits; Python refuses to read integers of several thousand digits."""


def number_of(text: str) -> int | float | None:
    """Return the number in ``text``; None if it is not a number. ``1e9`` and ``8.0`` are ints."""
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    exact = Decimal(text)
    if exact.is_zero() or exact.adjusted() < 0:
        return float(text) if exact else 0
    if exact.adjusted() > _LONGEST:
        return None
    whole = int(exact)
    return whole if whole == exact else float(text)
