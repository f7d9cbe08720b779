"""Spaces of settings, computed from their indices on demand."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# Any: what users give as a value.
from typing import Any, TypeAlias

import numpy as np

from fabric.graph.arguments.checks import Unfit, ordered_items
from fabric.graph.arguments.described import checked, refuse
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import found_text

Scalar: TypeAlias = str | int | float | bool | None
Setting: TypeAlias = Mapping[str, Scalar]
"""Values of a point by axis. An axis is a parameter of ``build``, ``hardware.SECTION.KEY``,
``depth.OPERATOR.INPUT``, or ``hop.OPERATOR.INPUT``, with values such as ``3+4``: cycles forward
and back."""


@dataclass(frozen=True)
class Axis:
    """Values of one or more names that vary together; ``rows`` is [values][names]."""

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True)
class Space:
    """Settings in a fixed order: products of axes, one product after the other.

    ``a * b`` combines every setting of ``a`` with every setting of ``b``, the last axis fastest.
    ``a + b`` has the settings of ``a`` and then the settings of ``b``. Settings are computed on
    demand, so that a grid of a million points takes hardly any memory.

    Attributes:
        products: the axes of each product.
    """

    products: tuple[tuple[Axis, ...], ...]

    def __mul__(self, other: Space) -> Space:
        """Combine every setting of this space with every setting of ``other``.

        Raises:
            ConfigurationError: a name is an axis of both spaces.
        """
        return Space(
            tuple(
                _distinct((*left, *right))
                for left, right in itertools.product(self.products, other.products)
            )
        )

    def __add__(self, other: Space) -> Space:
        return Space((*self.products, *other.products))

    def __len__(self) -> int:
        return sum(map(_size, self.products))

    def __getitem__(self, index: int) -> dict[str, Scalar]:
        """Return a setting.

        Raises:
            IndexError: ``index`` is not below ``len(self)``.
        """
        product, rows = self.rows_of(index)
        axes = self.products[product]
        values = (
            zip(axis.names, axis.rows[at], strict=True) for axis, at in zip(axes, rows, strict=True)
        )
        return dict(itertools.chain.from_iterable(values))

    def __iter__(self) -> Iterator[dict[str, Scalar]]:
        return (self[index] for index in range(len(self)))

    def rows_of(self, index: int) -> tuple[int, list[int]]:
        """Return the number of a setting's product, and the setting's row on each of its axes."""
        rest = index
        for product, axes in enumerate(self.products if index >= 0 else ()):
            if rest >= (size := _size(axes)):
                rest -= size
                continue
            rows = []
            for axis in reversed(axes):
                rest, row = divmod(rest, len(axis.rows))
                rows.append(row)
            return product, rows[::-1]
        raise IndexError(index)

    def index_of(self, product: int, rows: Sequence[int]) -> int:
        """Return the index of the setting with these rows of a product."""
        index = 0
        for axis, row in zip(self.products[product], rows, strict=True):
            index = index * len(axis.rows) + row
        return sum(map(_size, self.products[:product])) + index

    def indices(self, setting: Setting) -> Iterator[int]:
        """Yield the indices of settings with the values of ``setting``, one per product at most.

        ``setting`` may have more names than a product.
        """
        for product, axes in enumerate(self.products):
            rows = [_row_of(axis, setting) for axis in axes]
            present = [row for row in rows if row is not None]
            if len(present) == len(rows):
                yield self.index_of(product, present)

    @property
    def values(self) -> dict[str, tuple[Scalar, ...]]:
        """The values of each name, in the order in which they first occur."""
        values: dict[str, dict[tuple[type, Scalar], None]] = {}
        for axes in self.products:
            for axis in axes:
                for name, column in zip(axis.names, zip(*axis.rows, strict=True), strict=True):
                    values.setdefault(name, {}).update(dict.fromkeys(map(keyed, column)))
        return {name: tuple(value for _, value in column) for name, column in values.items()}


@checked
def grid(axes: Mapping[str, Iterable[Scalar]] | None = None, /, **named: Iterable[Scalar]) -> Space:
    """Return every combination of the values of some axes, the last axis fastest.

    Equal values of an axis are one. ``axes`` are for names with a dot, such as
    ``hardware.hbm.channels``.

    Raises:
        ConfigurationError: an axis has no values, or a value that is not a scalar.
    """
    columns = {**(axes or {}), **named}
    return Space((_distinct([_axis((name,), [values]) for name, values in columns.items()]),))


@checked
def zipped(
    axes: Mapping[str, Iterable[Scalar]] | None = None, /, **named: Iterable[Scalar]
) -> Space:
    """Return the first values of all axes together, then the second ones, and so on.

    Equal rows are one.

    Raises:
        ConfigurationError: as ``grid``; or the axes are not equally long.
    """
    columns = {**(axes or {}), **named}
    return Space(((_axis(tuple(columns), list(columns.values())),),))


def listed(settings: Iterable[Setting]) -> Space:
    """Return these settings in their order; equal settings are one."""
    distinct = {typed(each): each for each in settings}
    products = []
    for names, group in itertools.groupby(distinct.values(), tuple):
        rows = [tuple(each.values()) for each in group]
        columns: list[Iterable[Scalar]] = list(zip(*rows, strict=True))
        products.append((_axis(names, columns),))
    return Space(tuple(products))


@checked
def geometric(first: int, last: int, factor: int = 2) -> tuple[int, ...]:
    """Return ``first``, ``first * factor``, ``first * factor**2`` and so on, up to ``last``.

    Raises:
        ConfigurationError: not 1 <= first <= last, or ``factor`` is below 2.
    """
    if first < 1 or factor < 2 or last < first:
        refuse(
            f"geometric({first}, {last}, {factor}): expected 1 <= first <= last and a factor of at "
            "least 2",
            ConfigurationError,
        )
    terms = [first]
    while terms[-1] * factor <= last:
        terms.append(terms[-1] * factor)
    return tuple(terms)


def whole(value: Scalar) -> Scalar:
    """Return ``value`` as an integer if it is a float without a fraction, such as ``1e9``."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def keyed(value: Scalar) -> tuple[type, Scalar]:
    """Return a key of a value, with its type: 1, 1.0 and True have different keys."""
    return type(value), value


def typed(setting: Setting) -> tuple[object, ...]:
    """Return a key of a setting, with the types of its values."""
    return tuple((name, keyed(value)) for name, value in setting.items())


def _plain(value: Any) -> Scalar:
    plain: Scalar = os.fspath(value) if isinstance(value, os.PathLike) else value
    return value.item() if isinstance(value, np.generic) else plain


def _row_of(axis: Axis, setting: Setting) -> int | None:
    if not all(name in setting for name in axis.names):
        return None
    values = [keyed(setting[name]) for name in axis.names]
    rows = (number for number, row in enumerate(axis.rows) if list(map(keyed, row)) == values)
    return next(rows, None)


def _size(axes: Sequence[Axis]) -> int:
    return math.prod(len(axis.rows) for axis in axes)


def _axis(names: tuple[str, ...], columns: list[Iterable[Scalar]]) -> Axis:
    values: list[list[Scalar]] = []
    for name, column in zip(names, columns, strict=True):
        try:
            plain = [_plain(value) for value in ordered_items(column)]
        except Unfit:
            refuse(
                f"axis {name} is {found_text(column)}: expected a list of its values",
                ConfigurationError,
            )
        if not plain:
            refuse(f"axis {name} has no values: expected at least one", ConfigurationError)
        values.append(plain)
        for value in plain:
            if value is not None and not isinstance(value, str | int | float | bool):
                refuse(
                    f"axis {name} has {value!r}: expected a text, a number, a truth value or None",
                    ConfigurationError,
                )
    if len(set(map(len, values))) > 1:
        lengths = ", ".join(f"{name} {len(each)}" for name, each in zip(names, values, strict=True))
        refuse(f"zipped axes have {lengths}: expected equal numbers of values", ConfigurationError)
    rows = [tuple(map(whole, row)) for row in zip(*values, strict=True)]
    distinct = {tuple(map(keyed, row)): row for row in rows}
    return Axis(names, tuple(distinct.values()))


def _distinct(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    names = [name for axis in axes for name in axis.names]
    for name in names:
        if names.count(name) > 1:
            refuse(f"axis {name} is stated twice: expected each name once", ConfigurationError)
    return tuple(axes)
