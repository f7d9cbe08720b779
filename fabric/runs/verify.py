"""Compare what a program stored and sent with what it says it should have stored and sent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from fabric.graph.arguments.checks import Unfit, array_of, is_masked
from fabric.graph.values.block_scaled import BLOCK, block_format, numbers_of
from fabric.graph.values.fit import unit_of
from fabric.graph.values.stream_type import TileType
from fabric.graph.values.value import Element, dtype_name
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.expectation import Tolerance
from fabric.graph.wiring.mistakes import off_chip_tensor_of
from fabric.graph.wiring.stream import Stream
from fabric.messages.telling.errors import ProgramError
from fabric.messages.telling.place import Place
from fabric.messages.telling.users_code import raised, users_code
from fabric.messages.telling.wording import found_text
from fabric.runs.expected_tiles import EXACT, Roundings, least_unit, roundings_of, tiles_of, worse
from fabric.runs.verification import Errors, Mismatch, Number, OutputVerification, Verification

__all__ = ["noise_of", "verify"]

Array = np.ndarray

_ELEMENT: Final = 3.5
_ROW: Final = 1.25
_WHOLE: Final = 0.6
"""What errors may come to, in units times the root of the roundings: of an element, the root mean
square of a row, and that of all. One rounding is off by half a unit at most and by 0.2 at the root
of the mean square. In the shipped programs the largest errors are 1.9, 0.6 and 0.3."""

_MOST: Final = 0.5
"""What roundings may come to: beyond that, what is stored says nothing of what is wanted."""

_EXACTLY: Final = 1e-9
"""What errors may come to in a run that is exact."""

_DOUBLE: Final = unit_of(np.dtype(np.float64))

_FEW: Final = 16
"""A mean of fewer numbers says little: rows that are shorter share what is said of rows."""

_PLACES: Final = 5
_BLOCK: Final = 1 << 16
"""Elements that are compared at once."""

_AT_A_TIE: Final = 1.5
"""What an element can be off by at a tie between two elements of a block-scaled type, in steps, on
the scale of its row, which is that of its block where it is stored in one. A row is off by one step
at most: so is its largest number, as a part of itself, and so are products with a row of which that
is the only large one."""

_TYPICAL: Final = 0.25
"""The square of what a row with a tie is off by, in steps, where others are as large. In rows of 32
numbers it is less than a tenth of that."""

_INTEGERS: Final = 2**53
"""Up to here float64 has every integer."""


def verify(
    plan: Plan,
    stored: Mapping[str, Array],
    sent: Mapping[tuple[int, int], Sequence[Element]],
    *,
    exact: bool,
) -> Verification | None:
    """Compare what ``plan`` expects; None where it expects nothing.

    Args:
        plan: the program.
        stored: its outputs, by name.
        sent: the elements of the streams that it expects, by node and port.
        exact: floats were kept in float64.

    Raises:
        ProgramError: an output is expected that no operator stores, or that cannot be compared.
    """
    program = plan.program
    if not program.expects:
        return None
    come = roundings_of(plan)
    writers: dict[str, Roundings] = {}
    widths: dict[str, int | None] = {}
    for node in plan.nodes:
        for name in program.names.stored_by(node.name):
            writers[name] = max(writers.get(name, EXACT), come[node], key=worse)
            tensor = off_chip_tensor_of(node)
            widths[name] = None if tensor is None else _block_of(tensor.dtype)
    streams = []
    for node in plan.nodes:
        for port, expectation in sorted(node.expected.items()):
            stream = node.outputs[port]
            given = program.ask(f"expect of {stream.name}", expectation.compute)
            with users_code(f"what expect of {stream.name} returns", expectation.place):
                tiles = tiles_of(stream, sent[node.index, port], given, expectation.place)
            pair = _Pair(
                tiles.found,
                [
                    _real(f"expect of {stream.name} returns", each, expectation.place)
                    for each in tiles.wanted
                ],
                _block_of(_tile_type(stream).dtype),
            )
            compared = OutputVerification(
                output=stream.name,
                is_stream=True,
                dtype=dtype_name(_tile_type(stream).dtype),
                shape=(len(tiles.found),),
                wanted_shape=(len(tiles.wanted),),
                misfit=tiles.misfit,
            )
            streams.append(
                _judged(compared, pair, tiles.indices, expectation.tolerance, come[node], exact)
            )
    outputs = []
    for name, expectation in program.expected.items():
        if name not in stored:
            raise expectation.without_output(program.name, name, stored)
        given = program.ask(f"expect({name}=...)", expectation.compute)
        output = _real(f"output {name!r} is stored as", stored[name], expectation.place)
        array = _real(f"expect({name}=...) returns", given, expectation.place)
        compared = OutputVerification(
            output=name,
            dtype=dtype_name(output.dtype),
            shape=output.shape,
            wanted_shape=array.shape,
        )
        roundings = writers.get(name, EXACT)
        pair = _Pair([output], [array], widths.get(name))
        outputs.append(_judged(compared, pair, None, expectation.tolerance, roundings, exact))
    return Verification(
        streams=tuple(streams),
        outputs=tuple(outputs),
        unexpected=tuple(name for name in stored if name not in program.expected),
    )


def noise_of(exact: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, float | None]:
    """Return how far below an exact output the errors are that its declared types make.

    In decibels: ten times the logarithm of the sum of the squares of the numbers over that of
    their errors. None where nothing is off; minus infinity where a number or all of them got lost.

    Args:
        exact: outputs by name.
        declared: the same, computed in the types that the program declares.
    """
    return {
        name: _signal_to_noise_db(exact[name], array)
        for name, array in declared.items()
        if unit_of(array.dtype) and exact[name].shape == array.shape
    }


def _signal_to_noise_db(exact: Array, declared: Array) -> float | None:
    with np.errstate(all="ignore"):
        numbers, others = exact.astype(np.float64), declared.astype(np.float64)
        alike = (numbers == others) | (np.isnan(numbers) & np.isnan(others))
        errors = np.where(alike, 0.0, numbers - others)
        noise = float(np.square(errors).sum())
        signal = float(np.square(numbers[np.isfinite(numbers)]).sum())
    if not noise:
        return None
    return 10 * math.log10(signal / noise) if signal and math.isfinite(noise) else -math.inf


def _tile_type(stream: Stream) -> TileType:
    assert isinstance(stream.value, TileType)  # others cannot be expected
    return stream.value


def _block_of(dtype: np.dtype) -> int | None:
    return None if block_format(dtype) is None else BLOCK


class _Rows(NamedTuple):
    """What is compared: rows of numbers, found and wanted, with the scale of each row."""

    found: Array
    wanted: Array
    scales: Array


class _Pair(NamedTuple):
    """Arrays that shall be alike: an output, or the tiles of a stream.

    Attributes:
        found, wanted: one array a tile, or one of all.
        block: so many neighbours share a scale; None where they do not.
    """

    found: list[Array]
    wanted: list[Array]
    block: int | None

    def rows(self) -> Iterator[tuple[Array, Array]]:
        """Yield them as rows; arrays that have as many columns as the one before come together."""
        pairs = [
            tuple(each.reshape(-1, self._width(each)) for each in pair)
            for pair in zip(self.found, self.wanted, strict=True)
            if pair[0].size
        ]
        for _, alike in groupby(pairs, lambda pair: pair[0].shape[1]):
            found, wanted = zip(*alike, strict=True)
            yield _joined(found), _joined(wanted)

    def widest(self) -> int:
        """Return the largest number of numbers on one scale."""
        return max(map(self._width, self.found))

    def _width(self, array: Array) -> int:
        """Return how many numbers are judged on one scale: a row, or a block where it has some."""
        cols = array.shape[-1] if array.ndim else 1
        return cols if self.block is None or cols % self.block else self.block

    def mismatch(self, place: int, indices: list[tuple[int, ...]] | None) -> Mismatch:
        """Return the numbers at a place, counted over all arrays in row-major order."""
        for number, (found, wanted) in enumerate(zip(self.found, self.wanted, strict=True)):
            if place < found.size:
                index = tuple(map(int, np.unravel_index(place, found.shape)))
                tile = None if indices is None else indices[number]
                return Mismatch(index, _plain(found[index]), _plain(wanted[index]), tile)
            place -= found.size
        raise AssertionError(place)


def _joined(arrays: Sequence[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _judged(
    compared: OutputVerification,
    pair: _Pair,
    indices: list[tuple[int, ...]] | None,
    tolerance: Tolerance,
    roundings: Roundings,
    exact: bool,
) -> OutputVerification:
    """Return ``compared`` with what there is to say of arrays that shall be alike."""
    size = max(sum(each.size for each in arrays) for arrays in (pair.found, pair.wanted))
    compared = replace(compared, elements=size, mismatched=size)
    if compared.misfit is not None or compared.shape != compared.wanted_shape:
        return compared
    unit = unit_of(pair.found[0].dtype) if pair.found else 0.0
    least, bounds = 0.0, Errors(0.0, 0.0, 0.0)
    if unit:
        roundings, least = _allowed(roundings, pair, exact)
        noise = min(math.sqrt(roundings.variance), _MOST)
        at_ties = _at_ties(roundings, max(BLOCK, pair.widest()), size)
        bounds = Errors(
            *(
                each * noise + exact * _EXACTLY + more
                for each, more in zip((_ELEMENT, _ROW, _WHOLE), at_ties, strict=True)
            )
        )
        compared = replace(
            compared, roundings=roundings.times, unit=roundings.unit, step=roundings.step
        )
    given = tolerance.rtol, tolerance.atol
    compared = replace(
        compared,
        bounds=bounds if given == (None, None) else None,
        rtol=bounds.element if given[0] is None else given[0],
        atol=None if unit and given[1] is None else given[1] or 0.0,
    )
    return _counted(compared, pair, bounds, least, tolerance.equal_nan, indices)


def _at_ties(roundings: Roundings, cols: int, size: int) -> Errors:
    """Return what errors of ``size`` numbers in rows of ``cols`` may come to, of ties alone.

    One row may be off by as much as a row can, and as many as are likely to have a tie by what is
    typical. The more rows there are, the less that explains.
    """
    share = min(1.0, cols * (1 / max(1, size) + _TYPICAL * roundings.ties))
    step = roundings.step
    return Errors(_AT_A_TIE * step, step, math.sqrt(share) * step)


def _allowed(roundings: Roundings, pair: _Pair, exact: bool) -> tuple[Roundings, float]:
    """Return what has been rounded in all, and what the smallest numbers may be off by."""
    kind = pair.found[0].dtype
    own = least_unit(unit_of(kind))
    finfo: Any = vars(ml_dtypes)["finfo"]  # it has no annotations
    if not roundings.times:
        roundings = EXACT.then(own, 1)
    times = math.ceil(roundings.times)
    least = 0.0 if exact else float(finfo(kind).smallest_subnormal)
    # Who computes what is expected in a narrow type rounds as often.
    other = max((unit_of(each.dtype) for each in pair.wanted), default=0.0)
    other = least_unit(other) if other > _DOUBLE else 0.0
    return (EXACT if exact else roundings).then(other, times), least


def _rows_of(pair: _Pair) -> list[_Rows]:
    """Return what is compared, each row with the root of the mean square of what is wanted.

    Rows of few numbers have at least the scale that most of them have: what cancels out in one
    number is small beside what it was rounded from.
    """
    rows = [_Rows(found, wanted, _scales(wanted)) for found, wanted in pair.rows()]
    short = [each.scales for each in rows if each.found.shape[1] < _FEW]
    known = np.concatenate(short) if short else np.zeros(0)
    known = known[known > 0]
    least = np.partition(known, known.size // 2)[known.size // 2] if known.size else 0.0
    return [
        each._replace(scales=np.maximum(each.scales, least if each.found.shape[1] < _FEW else 0))
        for each in rows
    ]


def _scales(wanted: Array) -> Array:
    result = np.empty(len(wanted))
    for part in _blocks(wanted):
        with np.errstate(all="ignore"):
            numbers = np.abs(wanted[part].astype(np.float64))
            numbers[~np.isfinite(numbers)] = 0
            largest = numbers.max(axis=1, keepdims=True)
            # The squares of large numbers and of small ones have no float64.
            shares = numbers / np.where(largest > 0, largest, 1)
            result[part] = largest[:, 0] * np.sqrt(np.mean(np.square(shares), axis=1))
    return result


def _blocks(rows: Array) -> Iterator[slice]:
    """Yield slices of rows; blocks stay in the cache, which the arrays in between would not."""
    # Rows that are short come together as they are judged.
    step = max(1, _BLOCK // rows.shape[1] // _FEW) * _FEW
    return (slice(first, first + step) for first in range(0, len(rows), step))


def _counted(
    compared: OutputVerification,
    pair: _Pair,
    bounds: Errors,
    least: float,
    equal_nan: bool,
    indices: list[tuple[int, ...]] | None,
) -> OutputVerification:
    """Return ``compared`` with the counts, errors and places of what shall be alike."""
    mismatched, before = 0, 0
    absolute, relative, share, squares = 0.0, -1.0, 0.0, 0.0
    row_error, row_place = 0.0, 0
    wrong: list[int] = []
    for piece in _rows_of(pair):
        cols = piece.found.shape[1]
        for part in _blocks(piece.found):
            error, wanted, right = _errors(piece.found[part], piece.wanted[part], equal_nan)
            scales = piece.scales[part, np.newaxis]
            with np.errstate(all="ignore"):
                atol = compared.atol
                allowed = least + bounds.element * scales if atol is None else atol
                allowed = allowed + compared.rtol * np.abs(wanted)
                # An expected infinity has an infinite bound: only itself is within.
                within = np.isfinite(error) & (error <= allowed)
                places = np.flatnonzero(~right & ~within)
                shares = error / np.where(np.isfinite(allowed), allowed, 0)
                comparable = np.isfinite(wanted) & (wanted != 0)
                relatives = error[comparable] / np.abs(wanted[comparable])
                scaled = np.where(error > least, (error - least) / scales, 0)
                of_rows = np.square(scaled).sum(axis=1)
                together = -(-_FEW // cols)
                starts = np.arange(0, len(of_rows), together)
                # Few errors do not average out: those of fewer numbers count as of so many.
                sizes = np.maximum(np.minimum(together, len(of_rows) - starts) * cols, _FEW)
                means = np.sqrt(np.add.reduceat(of_rows, starts) / sizes)
            first = before + part.start * cols
            mismatched += len(places)
            wrong += (first + places[: _PLACES - len(wrong)]).tolist()
            absolute = max(absolute, float(error.max()))
            relative = max(relative, float(relatives.max(initial=-1)))
            share = max(share, float(shares[~right].max(initial=0)))
            squares += float(of_rows.sum())
            worst = int(means.argmax())
            if means[worst] > row_error:
                row_error = float(means[worst])
                at = slice(worst * together, (worst + 1) * together)
                row_place = first + at.start * cols + int(scaled[at].argmax())
        before += piece.found.size
    used = Errors(share, 0.0, 0.0)
    if compared.bounds is not None and bounds.row:
        whole = math.sqrt(squares / max(before, _FEW))
        used = Errors(share, row_error / bounds.row, whole / bounds.whole)
        if not mismatched and max(used) > 1:
            wrong = [row_place]
    return replace(
        compared,
        mismatched=mismatched,
        used=used,
        absolute_error=absolute,
        relative_error=None if relative < 0 else relative,
        places=tuple(pair.mismatch(place, indices) for place in wrong),
    )


def _errors(found: Array, wanted: Array, equal_nan: bool) -> tuple[Array, Array, Array]:
    """Return the errors and what is wanted, in float64, and where both are exactly the same."""
    left, right = _exactly(found, wanted)
    with np.errstate(all="ignore"):
        same: Array = left == right
        if equal_nan:
            same |= (left != left) & (right != right)  # noqa: PLR0124 - NaNs
        error = np.abs(left - right).astype(np.float64)
        error[same] = 0
        error[np.isnan(error)] = np.inf
        return error, right.astype(np.float64), same


def _exactly(found: Array, wanted: Array) -> tuple[Array, Array]:
    """Return both for arithmetic: as float64, or as Python's integers where that would round."""
    if _fits(found) and _fits(wanted):
        return found.astype(np.float64), wanted.astype(np.float64)
    return _as_integers(found), _as_integers(wanted)


def _as_integers(array: Array) -> Array:
    result = np.empty(array.shape, object)
    for place, number in enumerate(map(_plain, array.flat)):
        result.flat[place] = int(number) if float(number).is_integer() else number
    return result


def _fits(array: Array) -> bool:
    if array.dtype.kind not in "iu" or not array.size:
        return True
    return int(array.min()) >= -_INTEGERS and int(array.max()) <= _INTEGERS


def _plain(number: np.generic | np.ndarray) -> Number:
    """Return a number of Python's; there is one NaN, so that equal reports are equal."""
    if number.dtype.kind == "b":
        return bool(number)
    if _is_integer(number.dtype):
        return int(number)
    value = float(number)
    return math.nan if math.isnan(value) else value


def _real(what: str, given: object, place: Place) -> Array:
    """Return ``given`` as an array of real numbers."""
    try:
        array = array_of(given)
        if block_format(array.dtype) is not None:
            return numbers_of(array)
    except Unfit:
        kind = str(getattr(given, "dtype", found_text(given)))
        if is_masked(given):
            kind = "masked elements"
    except BaseException as error:
        raise raised(f"the array that {what}", error, place) from error
    else:
        if unit_of(array.dtype) or _is_integer(array.dtype) or array.dtype.kind == "b":
            return array
        kind = str(array.dtype)
    raise ProgramError(f"{what} {kind}: expected real numbers", file=place.file, line=place.line)


def _is_integer(dtype: np.dtype) -> bool:
    """Whether numpy or ml_dtypes knows ``dtype`` as a type of integers."""
    try:
        vars(ml_dtypes)["iinfo"](dtype)
    except ValueError:
        return False
    return True
