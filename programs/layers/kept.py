"""Streams that are buffered as a whole on chip before they are read."""

from __future__ import annotations

from functions.numbers import NumberOf

from fabric import Stream
from operators import Bufferize, Map, OneHot, Streamify


def kept(source: Stream) -> Stream:
    """Buffer ``source``, [..., n], so that all n elements arrive before the first one is sent."""
    return Streamify()(Bufferize(1)(source))


def kept_numbers(selectors: Stream) -> Stream:
    """Buffer one-hot selectors, [..., n], as integers."""
    return kept(Map(NumberOf())(selectors))


def selectors_of(numbers: Stream, width: int) -> Stream:
    """Return the one-hot selectors of the integers from ``kept_numbers``."""
    return Map(OneHot(width))(numbers)
