"""Streams that are buffered whole on chip before they are read."""

from __future__ import annotations

from functions.numbers import NumberOf

from fabric import Stream
from operators import Bufferize, Map, OneHot, Streamify


def kept(source: Stream) -> Stream:
    """Return ``source``, [..., n], through a buffer that takes all elements before it sends any."""
    return Streamify()(Bufferize(1)(source))


def kept_numbers(selectors: Stream) -> Stream:
    """Return the stream that each one-hot selector of [..., n] names, as buffered integers."""
    return kept(Map(NumberOf())(selectors))


def selectors_of(numbers: Stream, width: int) -> Stream:
    """Return the one-hot selectors for the result of ``kept_numbers``."""
    return Map(OneHot(width))(numbers)
