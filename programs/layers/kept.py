"""Streams that are kept on chip, whole, until they are read: what they pass by has no end yet."""

from __future__ import annotations

from functions.numbers import NumberOf

from fabric import Stream
from operators import Bufferize, Map, OneHot, Streamify


def kept(source: Stream) -> Stream:
    """Return ``source``, [..., n], in a buffer between: all of it comes in before any goes out."""
    return Streamify()(Bufferize(1)(source))


def kept_numbers(selectors: Stream) -> Stream:
    """Return which stream each one-hot selector of [..., n] names, kept as integers."""
    return kept(Map(NumberOf())(selectors))


def selectors_of(numbers: Stream, width: int) -> Stream:
    """Return the one-hot selectors that ``kept_numbers`` was given."""
    return Map(OneHot(width))(numbers)
