"""Comparison of stored outputs and sent streams with expectations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np

from fabric.graph.arguments.checks import Unfit, array_of, is_masked
from fabric.graph.values.block_scaled import block_format, blocks_of, numbers_of
from fabric.graph.values.conversion import holds_integers, limits
from fabric.graph.values.error_rules import REACH, is_float
from fabric.graph.values.error_tracking import TrackedArray
from fabric.graph.values.fit import unit_of
from fabric.graph.values.stream_type import TileType
from fabric.graph.values.value import Element, dtype_name
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.expectation import Tolerance
from fabric.messages.errors import ProgramError
from fabric.messages.place import Place
from fabric.messages.text import found_text
from fabric.messages.users_code import raised, users_code
from fabric.runs.expected_tiles import Pair, tiles_of
from fabric.runs.verification import Errors, Mismatch, Number, OutputVerification, Verification

Array = np.ndarray

_ROW: Final = 2.5
_WHOLE: Final = 1.5
"""The largest allowed ratio of the errors to the estimated errors (root mean squares of both): of a
row, and of all numbers. It is above 1, since equal numbers are rounded in the same direction."""

_EXACTLY: Final = 1e-9
"""The relative error that is allowed for each rounding in an exact run."""

_FEW: Final = 16
"""Rows with fewer numbers are averaged together."""

_PLACES: Final = 5
_BLOCK: Final = 1 << 16
"""The number of elements that are compared together."""

_SUMS: Final = 2.0**-20
"""Numbers of a type with a smaller rounding unit may be sums, rounded at each summand."""

_LONG: Final = 8
"""The error of the sum of some thousand products, in rounding units."""

_DOUBLE: Final = unit_of(np.dtype(np.float64))

_INTEGERS: Final = 2**53
"""float64 represents every integer up to this number."""


def verify(
    plan: Plan,
    stored: Mapping[str, Array],
    sent: Mapping[tuple[int, int], Sequence[Element]],
    *,
    exact: bool,
) -> Verification | None:
    """Compare outputs and streams with the expectations of ``plan``; None without expectations.

    ``stored`` has outputs by name, ``sent`` has elements by node and port.
    """
    program = plan.program
    if not program.expects:
        return None
    streams = []
    for node in plan.nodes:
        for port, expectation in sorted(node.expected.items()):
            stream = node.outputs[port]
            given = program.ask(f"expect of {stream.name}", expectation.compute)
            with users_code(f"what expect of {stream.name} returns", expectation.place):
                pair = tiles_of(stream, sent[node.index, port], given, expectation.place)
            what = f"expect of {stream.name} returns"
            pair = pair._replace(wanted=[_reals(what, x, expectation.place) for x in pair.wanted])
            assert isinstance(stream.value, TileType)  # other streams cannot be expected
            compared = OutputVerification(
                kind="stream",
                output=stream.name,
                dtype=dtype_name(stream.value.dtype),
                shape=(len(pair.found),),
                wanted_shape=(len(pair.wanted),),
                misfit=pair.misfit,
            )
            streams.append(_compare(compared, pair, expectation.tolerance, exact))
    outputs = []
    for name, expectation in program.expected.items():
        if name not in stored:
            expectation.refuse_output(program.name, name, stored)
        given = program.ask(f"expect({name}=...)", expectation.compute)
        output = _reals(f"output {name!r} is stored as", stored[name], expectation.place)
        array = _reals(f"expect({name}=...) returns", given, expectation.place)
        compared = OutputVerification(
            output=name,
            dtype=dtype_name(output.dtype),
            shape=output.shape,
            wanted_shape=array.shape,
        )
        judged = _compare(compared, Pair([output], [array]), expectation.tolerance, exact)
        finer = None if judged.agrees else program.ask(f"expect({name}=...)", expectation.finer)
        if finer is not None:
            array = _closer_reference(_plain_numbers(output), array, np.asarray(finer))
            judged = _compare(compared, Pair([output], [array]), expectation.tolerance, exact)
        outputs.append(judged)
    return Verification(
        streams=tuple(streams),
        outputs=tuple(outputs),
        unexpected=tuple(name for name in stored if name not in program.expected),
        exact=exact,
    )


def _closer_reference(found: Array, wanted: Array, finer: Array) -> Array:
    """Return, for each element, the reference that is closer to ``found``."""
    if finer.shape != wanted.shape or found.shape != wanted.shape:
        return wanted
    with np.errstate(all="ignore"):
        errors, finer_errors = (_errors(found, x, equal_nan=True)[0] for x in (wanted, finer))
        return np.where(finer_errors < errors, finer, wanted)


def noise_of(exact: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the signal-to-noise ratio of declared types against exact outputs, in decibels.

    The ratio is None without errors, and minus infinity if numbers became infinite or NaN.
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


class _Rows(NamedTuple):
    """Rows of numbers. ``errors`` are the estimated errors, without the last rounding."""

    found: Array
    wanted: Array
    errors: Array
    dtype: np.dtype


def _rows_of(pair: Pair) -> Iterator[_Rows]:
    """Yield rows; successive arrays with the same number of columns are joined."""
    arrays = [
        _rows(found, wanted)
        for found, wanted in zip(pair.found, pair.wanted, strict=True)
        if found.size
    ]
    for _, alike in groupby(arrays, lambda rows: rows.found.shape[1]):
        found, wanted, errors, dtypes = zip(*alike, strict=True)
        yield _Rows(_joined(found), _joined(wanted), _joined(errors), dtypes[0])


def _mismatch(pair: Pair, place: int, allowed: float) -> Mismatch:
    """Return the mismatch at ``place``, a row-major index over all arrays."""
    for number, (found, wanted) in enumerate(zip(pair.found, pair.wanted, strict=True)):
        if place < found.size:
            index = tuple(map(int, np.unravel_index(place, found.shape)))
            tile = None if pair.indices is None else pair.indices[number]
            numbers = _plain_numbers(found)
            return Mismatch(index, _plain(numbers[index]), _plain(wanted[index]), tile, allowed)
        place -= found.size
    raise AssertionError(place)


def _plain_numbers(array: Array) -> Array:
    plain = array.view(np.ndarray)
    return plain if block_format(plain.dtype) is None else numbers_of(plain)


def _rows(found: Array, wanted: Array) -> _Rows:
    cols = found.shape[-1] if found.ndim else 1
    numbers = _plain_numbers(found).reshape(-1, cols)
    wanted = wanted.reshape(-1, cols)
    errors: Array | None = None
    if isinstance(found, TrackedArray):
        errors = found.error if found.kin is None else found.off()
    elif unit_of(found.dtype):
        # A user's operator has dropped the errors. A rounding on the scale of the row is assumed.
        sizes = np.abs(_finite(wanted))
        unit = unit_of(found.dtype)
        errors = unit * (_LONG if unit < _SUMS else 0.5) * (sizes + _root_mean_square(sizes))
    errors = np.zeros(()) if errors is None else errors
    spread = errors if errors.ndim == 0 else errors.reshape(-1, cols)
    return _Rows(numbers, wanted, np.broadcast_to(spread, numbers.shape), found.dtype)


def _finite(array: Array) -> Array:
    numbers = array.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, 0)


def _root_mean_square(numbers: Array) -> Array:
    largest = numbers.max(axis=1, keepdims=True, initial=0)
    # Numbers are scaled, since squares of very large or small numbers are out of range.
    shares = numbers / np.where(largest > 0, largest, 1)
    result: Array = largest * np.sqrt(np.mean(np.square(shares), axis=1, keepdims=True))
    return result


def _joined(arrays: Sequence[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _compare(
    compared: OutputVerification, pair: Pair, tolerance: Tolerance, exact: bool
) -> OutputVerification:
    size = max(sum(array.size for array in arrays) for arrays in (pair.found, pair.wanted))
    compared = replace(compared, elements=size, mismatched=size)
    if compared.misfit is not None or compared.shape != compared.wanted_shape:
        return compared
    rtol, atol = tolerance.rtol, tolerance.atol
    if not pair.found or not is_float(pair.found[0].dtype):
        rtol, atol = rtol or 0.0, atol or 0.0
    compared = replace(compared, rtol=rtol, atol=atol)
    return _compare_numbers(compared, pair, tolerance.equal_nan, exact)


def _blocks(rows: Array) -> Iterator[slice]:
    """Return slices of rows that are so small that intermediate arrays stay in the cache."""
    step = max(1, _BLOCK // rows.shape[1] // _FEW) * _FEW
    return (slice(first, first + step) for first in range(0, len(rows), step))


class _Allowed(NamedTuple):
    """A mask of right numbers, allowed errors, and estimated errors with the last rounding."""

    within: Array
    errors: Array
    scales: Array


def _allowed(
    rows: _Rows, compared: OutputVerification, error: Array, wanted: Array, exact: bool
) -> _Allowed:
    carried = np.abs(_finite(rows.errors)) + np.where(np.isfinite(rows.errors), 0, np.inf)
    sizes = np.abs(wanted)
    given = unit_of(rows.wanted.dtype)
    own = given / 2 * sizes if given > _DOUBLE else 0.0
    if compared.rtol is not None and compared.atol is not None:
        reach = compared.atol + compared.rtol * sizes
        if not is_float(rows.dtype):
            reach = np.maximum(reach, REACH * carried)
        return _Allowed(error <= reach, reach, np.zeros(sizes.shape))
    if exact:
        times = max(_EXACTLY, REACH * given if given > _DOUBLE else 0.0) / _DOUBLE
        carried = times * carried
        reach = carried + _EXACTLY * sizes * (rows.errors > 0)
    else:
        # Expected values of a narrow type were rounded as often as the numbers of the run.
        unit = unit_of(rows.dtype)
        times = 1 + (max(1.0, given / unit if unit else 1.0) if given > _DOUBLE else 0.0)
        carried = times * carried
        reach = REACH * carried
    reach = reach + own + (compared.atol or 0.0) + (compared.rtol or 0.0) * sizes
    nearest, least, most = (
        _rounded(numbers, rows.dtype, exact) for numbers in (wanted, wanted - reach, wanted + reach)
    )
    last = np.where(np.isfinite(nearest), np.abs(nearest - wanted), 0)
    # Types without infinities convert numbers beyond their largest to NaN.
    least = np.where(np.isfinite(least), np.fmin(nearest, least), -np.inf)
    most = np.where(np.isfinite(most), np.fmax(nearest, most), np.inf)
    numbers = rows.found.astype(np.float64)
    return _Allowed(
        (least <= numbers) & (numbers <= most),
        reach + last,
        np.sqrt(np.square(carried) + np.square(last) + np.square(own)),
    )


def _rounded(numbers: Array, dtype: np.dtype, exact: bool) -> Array:
    if exact:
        return numbers
    if block_format(dtype) is not None:
        largest = float(np.finfo(np.float32).max)
        return numbers_of(
            blocks_of(np.nan_to_num(numbers, posinf=largest, neginf=-largest), dtype)
        ).astype(np.float64)
    return numbers.astype(dtype).astype(np.float64)


class _RowErrors(NamedTuple):
    """The errors of some rows.

    Attributes:
        wrong: the places of the first wrong numbers, with the errors allowed there.
        relative: the largest relative error of finite nonzero numbers; -1 without such numbers.
        share: the largest ratio of an error to its bound.
        row: the largest ratio of mean(error²) to mean(estimated error²) of a group of rows.
        row_place: the number in this group whose error exceeds its estimated error the most.
        squares: the sum over groups of this ratio times the count of numbers.
        numbers: the count of all numbers.
    """

    wrong: list[tuple[int, float]]
    mismatched: int
    absolute: float
    relative: float
    share: float
    row: float
    row_place: int
    squares: float
    numbers: int


def _compare_rows(
    rows: _Rows, first: int, compared: OutputVerification, equal_nan: bool, exact: bool
) -> _RowErrors:
    error, wanted, right = _errors(rows.found, rows.wanted, equal_nan)
    cols = error.shape[1]
    # Few errors do not average out. Short rows share a group, and a group of fewer than 16 numbers
    # counts as 16.
    group = -(-_FEW // cols)
    starts = np.arange(0, len(error), group)
    sizes = np.minimum(group, len(error) - starts) * cols
    with np.errstate(all="ignore"):
        allowed = _allowed(rows, compared, error, wanted, exact)
        within = allowed.within & np.isfinite(error)
        shares = error / np.where(np.isfinite(allowed.errors), allowed.errors, 0)
        shares = np.where(within, np.minimum(shares, 1), shares)
        comparable = np.isfinite(wanted) & (wanted != 0)
        relatives = error[comparable] / np.abs(wanted[comparable])
        known = np.isfinite(error) & np.isfinite(allowed.scales)
        sums = [
            np.add.reduceat(np.where(known, np.square(values), 0).sum(axis=1), starts)
            for values in (error, allowed.scales)
        ]
        few = sizes / np.maximum(sizes, _FEW)
        means = np.where(sums[1] > 0, few * sums[0] / np.where(sums[1] > 0, sums[1], 1), 0)
        worst = int(means.argmax())
        at = slice(worst * group, (worst + 1) * group)
        most = int((error[at] - allowed.scales[at]).argmax())
    places = np.flatnonzero(~right & ~within)
    return _RowErrors(
        [(first + int(place), float(allowed.errors.flat[place])) for place in places[:_PLACES]],
        len(places),
        float(error.max()),
        float(relatives.max(initial=-1)),
        float(shares[~right].max(initial=0)),
        float(means[worst]),
        first + at.start * cols + most,
        float((means * sizes).sum()),
        int(sizes.sum()),
    )


def _compare_numbers(
    compared: OutputVerification, pair: Pair, equal_nan: bool, exact: bool
) -> OutputVerification:
    parts: list[_RowErrors] = []
    first = 0
    for piece in _rows_of(pair):
        for part in _blocks(piece.found):
            rows = _Rows(piece.found[part], piece.wanted[part], piece.errors[part], piece.dtype)
            parts.append(_compare_rows(rows, first, compared, equal_nan, exact))
            first += rows.found.size
    if not parts:
        return compared
    mismatched = sum(part.mismatched for part in parts)
    wrong = [place for part in parts for place in part.wrong][:_PLACES]
    used = Errors(max(part.share for part in parts), 0.0, 0.0)
    if compared.rtol is None and compared.atol is None:
        worst = max(parts, key=lambda part: part.row)
        numbers = max(sum(part.numbers for part in parts), _FEW)
        whole = math.sqrt(math.fsum(part.squares for part in parts) / numbers)
        used = Errors(used.element, math.sqrt(worst.row) / _ROW, whole / _WHOLE)
        if not mismatched and max(used) > 1:
            wrong = [(worst.row_place, 0.0)]
    else:
        wrong = [(place, 0.0) for place, _ in wrong]
    relative = max(part.relative for part in parts)
    return replace(
        compared,
        mismatched=mismatched,
        used=used,
        absolute_error=max(part.absolute for part in parts),
        relative_error=None if relative < 0 else relative,
        places=tuple(_mismatch(pair, place, bound) for place, bound in wrong),
    )


def _errors(found: Array, wanted: Array, equal_nan: bool) -> tuple[Array, Array, Array]:
    """Return errors, wanted numbers in float64, and a mask of equal numbers."""
    left, right = _comparable(found, wanted)
    with np.errstate(all="ignore"):
        same: Array = left == right
        if equal_nan:
            same |= (left != left) & (right != right)  # noqa: PLR0124 - NaNs
        error = np.abs(left - right).astype(np.float64)
        error[same] = 0
        error[np.isnan(error)] = np.inf
        return error, right.astype(np.float64), same


def _comparable(found: Array, wanted: Array) -> tuple[Array, Array]:
    """Return both arrays as float64, or as Python's integers if float64 would round them."""
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
    """Return a number of Python. All NaNs are one object, so that equal reports are equal."""
    if number.dtype.kind == "b":
        return bool(number)
    if holds_integers(number.dtype):
        return int(number)
    value = float(number)
    return math.nan if math.isnan(value) else value


def _reals(what: str, given: object, place: Place) -> Array:
    try:
        array = given if isinstance(given, TrackedArray) else array_of(given)
        if block_format(array.dtype) is not None:
            return array if isinstance(array, TrackedArray) else numbers_of(array)
    except Unfit:
        kind = str(getattr(given, "dtype", found_text(given)))
        if is_masked(given):
            kind = "masked elements"
    except BaseException as error:
        raise raised(f"the array that {what}", error, place) from error
    else:
        if unit_of(array.dtype) or limits(array.dtype) is not None:
            return array
        kind = str(array.dtype)
    raise ProgramError(f"{what} {kind}: expected real numbers", file=place.file, line=place.line)
