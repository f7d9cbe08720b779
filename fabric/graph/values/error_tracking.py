"""Arrays that carry the errors of their numbers, for runs that are verified.

Every numpy function that computes with a ``TrackedArray`` also computes the error of its result
from the errors of its operands. Functions that only move numbers move the errors with them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from typing_extensions import override

from fabric.graph.values import error_rules as rules
from fabric.graph.values.block_scaled import block_format
from fabric.graph.values.fit import unit_of

Array: TypeAlias = np.ndarray


_GROUPS: Final = 64
"""The most groups of summands of a product. Squares are added in a group and then multiplied, so
variances of products with more than 64 summands are estimates."""


_tracking: ContextVar[bool] = ContextVar("tracking", default=False)


@contextlib.contextmanager
def tracking_errors(tracks: bool) -> Iterator[None]:
    """Let loads return tracked arrays inside the block, if ``tracks``."""
    token = _tracking.set(tracks)
    try:
        yield
    finally:
        _tracking.reset(token)


def tracks_errors() -> bool:
    """Whether this run tracks the errors of numbers."""
    return _tracking.get()


def loaded(array: Array, source: Array) -> Array:
    """Return ``array``, to which ``source`` was converted, with its errors if this run has any."""
    if not _tracking.get() or not rules.is_float(array.dtype):
        return array
    result = array.view(TrackedArray)
    if isinstance(source, TrackedArray):
        result.error = source.error
    if block_format(array.dtype) is None and unit_of(source.dtype) < unit_of(array.dtype):
        with np.errstate(all="ignore"):
            result.rounding = _rounded(source, array)
    return result


def off_from(array: Array, exact: Array) -> Array:
    """Return ``array``; its errors are its distances from the float64 numbers ``exact``."""
    with np.errstate(all="ignore"):
        return _tracked(array, np.abs(exact - rules.floats(array)).astype(rules.FLOAT), None)


def _rounded(source: Array, array: Array) -> Array | np.dtype | None:
    if not rules.is_float(source.dtype):
        return None
    if array.dtype.itemsize == 1:
        errors = np.nan_to_num(rules.lost(source, array))
        return errors if errors.any() else None
    # In most arrays, one of the first numbers was rounded.
    for part in (slice(None, 4096), slice(None)):
        before, kept = (values.reshape(-1)[part] for values in (source, array))
        if ((before != rules.floats(kept)) & (before == before)).any():  # noqa: PLR0124 - NaNs
            return array.dtype
    return None


class TrackedArray(np.ndarray):
    """An array with the errors of its numbers.

    Attributes:
        error: absolute errors before the last rounding; None if the numbers are only copied.
        rounding: the element type to which the numbers were rounded last, or the absolute errors of
            that rounding; None if the rounding was exact.
        kin: the array from which numpy made this array in an unknown way; None if the way is known.
        rows: sums over the rows for products, cached if the array is read-only.
    """

    error: Array | None = None
    rounding: Array | np.dtype | None = None
    kin: TrackedArray | None = None
    rows: _Rows | None = None
    _is_open: bool = False

    @override
    def __array_finalize__(self, obj: object) -> None:
        if not isinstance(obj, TrackedArray):
            return
        if self.shape != obj.shape:
            self.kin = obj
        elif self.dtype == obj.dtype:
            self.error, self.rounding, self.kin = obj.error, obj.rounding, obj.kin
        else:  # such as np.asanyarray(obj, dtype)
            self.error, self.rounding = obj.off(), self.dtype if unit_of(self.dtype) else None

    def off(self) -> Array | None:
        """Return the absolute errors, with the last rounding included; None if all are 0."""
        with np.errstate(all="ignore"):
            return self._off()  # type: ignore[no-any-return]

    def _off(self) -> Any:
        if self.kin is not None:
            return _alike(self, [self.kin])
        return rules.joined(self.error, _last_rounding(self))

    def become(self, result: Array) -> Array:
        """Return ``result``, these numbers converted to another element type, with its errors."""
        kind, own = result.dtype, self.dtype
        if not rules.is_rounded(own, kind):
            return _tracked(result, self.error, self.rounding)
        with np.errstate(all="ignore"):
            numbers, off = rules.floats(self), self.off()
            if block_format(kind) is not None or not rules.is_float(kind):
                # The reference rounds to blocks, too. Only numbers near a tie differ.
                step = np.trunc if block_format(kind) is None else rules.in_blocks(kind)
                error = None if off is None else rules.jumps(step, [numbers], [off])
                return result if off is None and step is np.trunc else _tracked(result, error, None)
            errors = None
            if kind.itemsize == 1 or (self.error is None and self.kin is None):
                errors = rules.lost(numbers, result)
                if self.error is None and not np.fmax.reduce(errors, axis=None, initial=0):
                    return _tracked(result, None, self.rounding)
            # An 8-bit type rounds coarsely.
            return _tracked(result, off, errors if kind.itemsize == 1 else kind)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.view(np.ndarray)[key]
        return self._moved(lambda array: array[_plain(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.view(np.ndarray)[_plain(key)] = _plain(value)
        with np.errstate(all="ignore"):
            self._write(_plain(key), value)

    def _write(self, key: Any, value: Any) -> None:
        error, rounding = self._open()
        is_tracked = isinstance(value, TrackedArray)
        error[key] = _before(value) if is_tracked else 0
        rounding[key] = _as_array(value) if is_tracked else 0

    def _open(self) -> tuple[Array, Array]:
        """Return writable arrays of the errors, which later views of this array share."""
        if not self._is_open:
            kind = rules.FLOAT if self.dtype.itemsize < 8 else np.float64
            self.error = np.array(np.broadcast_to(_before(self), self.shape), kind)
            self.rounding = np.array(np.broadcast_to(_as_array(self), self.shape), kind)
            self.kin, self._is_open = None, True
        assert isinstance(self.error, np.ndarray)
        assert isinstance(self.rounding, np.ndarray)
        return self.error, self.rounding

    def _moved(self, move: Callable[[Array], Any]) -> Any:
        moved = move(self.view(np.ndarray))
        if not isinstance(moved, np.ndarray):
            return moved
        if self.kin is not None:
            result = moved.view(TrackedArray)
            result.kin = self.kin
            return result
        error = None if self.error is None else move(self.error)
        rounding = self.rounding
        if isinstance(rounding, np.ndarray):
            rounding = move(rounding)
        result = _tracked(moved, error, rounding)
        result._is_open = self._is_open and np.may_share_memory(moved, self)
        return result

    @override
    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        result = self.view(np.ndarray).astype(dtype, *args, **kwargs)
        return self.become(result)

    @override
    def view(self, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            return super().view()
        if args and args[0] in (np.ndarray, TrackedArray):
            return super().view(*args, **kwargs)
        return super().view(np.ndarray).view(*args, **kwargs)

    @override
    def copy(self, *args: Any, **kwargs: Any) -> Any:
        result = _tracked(self.view(np.ndarray).copy(*args, **kwargs), self.error, self.rounding)
        result.kin = self.kin
        result._open()
        return result

    @property
    @override
    def T(self) -> Any:
        return self.transpose()

    @override
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = tuple(map(_plain, out))
        output = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        if method == "at":
            target, key, *more = inputs
            if isinstance(target, TrackedArray):
                with np.errstate(all="ignore"):
                    _put(target, _plain(key), more)
            return None
        if isinstance(output, tuple):
            return tuple(_unknown(part, inputs) for part in output)
        with np.errstate(all="ignore"):
            numbers = np.asarray(output)
            if method not in ("__call__", "reduce", "accumulate"):
                result = _unknown(numbers, inputs)
            else:
                if numbers.dtype == object:  # from a function on Python's numbers
                    numbers = numbers.astype(np.float64)
                rule = _called if method == "__call__" else partial(_folded, method, kwargs)
                result = _tracked(numbers, *rule(ufunc, inputs, numbers))
        if out is None:
            return result
        (array,) = out
        if isinstance(array, TrackedArray):
            array.error, array.rounding, array.kin = result.error, result.rounding, result.kin
        return array

    @override
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            if func in _MOVING:
                return _move(func, args, kwargs)
            if func in _UNTRACKED:
                return func(*_plain(args), **kwargs)
            if func in _FUNCTIONS:
                return _FUNCTIONS[func](*args, **kwargs)
            return super().__array_function__(func, types, args, kwargs)


def _moving(name: str) -> Callable[..., Any]:
    """Return numpy's method ``name``, which only moves numbers, for tracked arrays."""

    def method(self: TrackedArray, *args: Any, **kwargs: Any) -> Any:
        return self._moved(lambda array: getattr(array, name)(*_plain(args), **kwargs))

    return method


for _name in ("flatten", "ravel", "repeat", "reshape", "squeeze", "swapaxes", "take", "transpose"):
    setattr(TrackedArray, _name, _moving(_name))
for _name in ("argmax", "argmin", "argsort"):
    setattr(TrackedArray, _name, getattr(np, _name))


def carried(result: Array, operands: Sequence[Array | None]) -> Array:
    """Return ``result`` with the relative errors of ``operands``, if a function dropped them."""
    kin = [operand for operand in operands if isinstance(operand, TrackedArray)]
    if not kin or isinstance(result, TrackedArray) or not rules.is_float(result.dtype):
        return result
    with np.errstate(all="ignore"):
        return _tracked(result, _alike(result, kin), result.dtype)


def _plain(value: Any) -> Any:
    if isinstance(value, TrackedArray):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    return value


def _operand(value: Any) -> Any:
    """Return an operand in a type with which numpy can call its function again."""
    plain = _plain(value)
    is_float = isinstance(plain, np.ndarray) and rules.is_float(plain.dtype)
    return rules.floats(plain) if is_float else plain


def _tracked(numbers: Any, error: Array | None, rounding: Array | np.dtype | None) -> TrackedArray:
    plain = np.asarray(numbers)
    result: TrackedArray = plain.view(TrackedArray)
    if error is not None:
        error = np.asarray(error)
        if not np.isfinite(error).all():  # errors of numbers that are not finite
            error = np.nan_to_num(error, nan=0.0, posinf=0.0)
        if error.shape != plain.shape:
            error = np.broadcast_to(error, plain.shape)
    result.error, result.rounding, result.kin = error, rounding, None
    return result


def _unknown(numbers: Any, inputs: Sequence[Any]) -> TrackedArray:
    plain = np.asarray(numbers)
    kin = [operand for operand in inputs if isinstance(operand, TrackedArray)]
    if plain.dtype == object or not rules.is_float(plain.dtype):
        result: TrackedArray = plain.view(TrackedArray)
        result.kin = kin[0]
        return result
    return _tracked(plain, _alike(plain, kin), plain.dtype)


def _alike(array: Array, kin: Sequence[TrackedArray]) -> Any:
    """Return errors of ``array`` from the largest ratio of error to number in ``kin``."""
    share = 0.0
    for source in kin:
        off = source.off()
        if off is not None:
            share = max(share, float(rules.ratio(off, rules.floats(source), None)))
    numbers: Array = np.abs(rules.floats(array))
    if not numbers.size:
        return numbers
    rows: Array = numbers
    if numbers.ndim:
        rows = np.sqrt(np.mean(np.square(numbers), axis=-1, keepdims=True))
    return share * (numbers + rows)


def _last_rounding(array: TrackedArray) -> Array | None:
    """Return the errors of the last rounding; None if it was exact."""
    rounding = array.rounding
    return rules.half_unit(array, rounding) if isinstance(rounding, np.dtype) else rounding


def _as_array(array: TrackedArray) -> Array:
    errors = None if array.kin is not None else _last_rounding(array)
    return np.zeros((), rules.FLOAT) if errors is None else errors


def _widest(roundings: Sequence[Array | np.dtype | None]) -> np.dtype | None:
    types = [kind for kind in roundings if isinstance(kind, np.dtype)]
    return max(types, key=unit_of, default=None)


_SELECTING: Final = {np.maximum, np.minimum, np.fmax, np.fmin, np.clip, np.copysign}
"""Functions that return one of their operands."""

_SIGNS: Final = {np.negative, np.absolute, np.fabs, np.positive}

_COMPARING: Final = {np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal}

_TESTS: Final = {np.isnan, np.isinf, np.isfinite, np.signbit}

_LOGIC: Final = {
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.invert,
    np.logical_and,
    np.logical_not,
    np.logical_or,
    np.logical_xor,
}


_State: TypeAlias = "tuple[Array | None, Array | np.dtype | None]"


def _errors_of(inputs: Sequence[Any]) -> list[Array | None]:
    return [operand._off() if isinstance(operand, TrackedArray) else None for operand in inputs]


def _is_copied(array: TrackedArray) -> bool:
    return array.error is None and array.kin is None and not isinstance(array.rounding, np.ndarray)


def _called(ufunc: Any, inputs: Any, result: Array) -> _State:
    rule = _KINDS.get(ufunc)
    if rule is not None:
        return rule(ufunc, inputs, result)
    rounding = result.dtype if unit_of(result.dtype) and ufunc not in rules.STEPS else None
    off = _errors_of(inputs)
    error = None
    if any(errors is not None for errors in off):
        error = _computed(ufunc, inputs, off)
    if rounding is not None and ufunc not in rules.ROUNDED_ONCE:
        # Results of mathematical libraries are off by one or two units.
        unit, least = rules.half(rounding)
        error = rules.joined(error, 2 * unit * np.abs(rules.floats(result)) + least)
    return error, rounding


def _computed(ufunc: Any, inputs: Any, off: rules.Errors) -> Array:
    numbers = [_operand(operand) for operand in inputs]
    rule = rules.RULES.get(ufunc)
    if rule is None:
        return (rules.jumps if ufunc in rules.STEPS else rules.shifted)(ufunc, numbers, off)
    if ufunc in {np.add, np.multiply} and inputs[0] is inputs[1]:
        return np.asarray(2 * rules.zeroed(off[0]) * (1 if ufunc is np.add else np.abs(numbers[0])))
    return np.asarray(rule(*numbers, *off))


def _signed(_: Any, inputs: Any, __: Array) -> _State:
    (x,) = inputs
    return (x.error, x.rounding) if x.kin is None else (x.off(), None)


def _selected(ufunc: Any, inputs: Any, __: Array) -> _State:
    tracked = [operand for operand in inputs if isinstance(operand, TrackedArray)]
    if all(map(_is_copied, tracked)):
        return None, _widest([operand.rounding for operand in tracked])
    return rules.shifted(ufunc, [_operand(operand) for operand in inputs], _errors_of(inputs)), None


def _logical(_: Any, inputs: Any, __: Array) -> _State:
    errors = [error for error in _errors_of(inputs) if error is not None]
    return (np.maximum.reduce(np.broadcast_arrays(*errors)) if errors else None), None


def _compared(_: Any, inputs: Any, __: Array) -> _State:
    off = _errors_of(inputs)
    if all(errors is None for errors in off):
        return None, None
    x, y = map(_operand, inputs)
    reach = rules.REACH * rules.joined(*off)
    return (np.abs(x - y) <= reach).astype(rules.FLOAT) / rules.FLOAT.type(rules.JUMP), None


def one_step(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return ``function`` as one step: its errors follow from its result, not from its parts."""

    @wraps(function)
    def called(*arrays: Array) -> Array:
        result = function(*map(_plain, arrays))
        with np.errstate(all="ignore"):
            off = _errors_of(arrays)
            if all(errors is None for errors in off):
                return result
            return _tracked(result, rules.jumps(function, [*map(_operand, arrays)], off), None)

    return called


class _Rows(NamedTuple):
    """The rows of the first factor of a product, as sums over groups divided by their sizes.

    Attributes:
        largest: magnitude, by which the numbers are divided before they are squared.
        squares: of the numbers.
        errors: squares of their errors; None if all are 0.
        shared: the ratio of errors to numbers of a row, as root mean squares.
    """

    largest: Any
    squares: Array
    errors: Array | None
    shared: Any


def _rows_of(a: Any, x: Array, starts: Array) -> _Rows:
    keeps = isinstance(a, TrackedArray) and not a.flags.writeable
    if keeps and a.rows is not None:
        return a.rows  # type: ignore[no-any-return]
    largest = rules.largest(x)
    sizes = np.diff(starts, append=x.shape[-1]).astype(x.dtype)
    squares = rules.grouped(np.square(x / largest), -1, starts) / sizes
    (off,) = _errors_of([a])
    errors: Any = None
    shared: Any = 0.0
    if off is not None:
        off = np.broadcast_to(off, x.shape)
        errors = rules.grouped(np.square(off / largest), -1, starts) / sizes
        shared = rules.ratio(off, x, -1)
    rows = _Rows(largest, squares, errors, shared)
    if keeps:
        a.rows = rows
    return rows


def _product(_: Any, inputs: Any, result: Array) -> _State:
    """Return error and rounding of ``a @ b``, from the variance of sums and relative errors."""
    a, b = inputs
    x, y = rules.floats(a), rules.floats(b)
    count = x.shape[-1]
    if min(x.ndim, y.ndim) < 2 or not result.size or not count:
        tracked = [factor for factor in (a, b) if isinstance(factor, TrackedArray)]
        return _alike(result, tracked), result.dtype
    size = -(-count // _GROUPS)
    starts = np.arange(0, count, size)
    rows = _rows_of(a, x, starts)
    held, right = rules.factor_squares(y, size, starts)
    unit, least = rules.half(result.dtype)
    summing = unit * math.sqrt(count) / 4
    share, wrong = _parts(b, y)
    weights = (share**2 + summing**2) * rows.squares
    if rows.errors is not None:
        weights = weights + rows.errors
    variance = weights @ held
    shares = rows.shared + (share + summing)
    if wrong is not None:
        errors = rules.grouped(np.square(wrong / right), -2, starts)
        variance = variance + rows.squares @ errors
        shares = shares + rules.ratio(wrong, y, -2)
    error = rules.joined(
        np.sqrt(variance) * (rows.largest * right), shares * np.abs(rules.floats(result))
    )
    return error + least, result.dtype


def _parts(b: Any, numbers: Array) -> tuple[float, Array | None]:
    """Return the errors of a factor: one relative error, or an array of absolute errors."""
    if not isinstance(b, TrackedArray):
        return 0.0, None
    if b.error is None and b.kin is None and not isinstance(b.rounding, np.ndarray):
        return 0.0 if b.rounding is None else rules.half(b.rounding)[0], None
    off = b.off()
    return 0.0, None if off is None else np.broadcast_to(off, numbers.shape)


def _folded(method: str, kwargs: Any, ufunc: Any, inputs: Any, result: Array) -> _State:
    (x,) = inputs
    numbers = rules.floats(x)
    if ufunc in _SELECTING and (_is_copied(x) or not numbers.size):
        return None, x.rounding
    along: dict[str, Any] = {"axis": kwargs.get("axis", 0)}
    count = numbers.size / max(1, result.size)
    if method == "reduce":
        along["keepdims"] = kwargs.get("keepdims", False)
    else:
        count = numbers.shape[along["axis"]]
    fold, largest = getattr(np.add, method), getattr(np.maximum, method)
    errors = x.off()
    off = np.broadcast_to(rules.zeroed(errors), numbers.shape)
    if ufunc in _SELECTING and method == "reduce":
        ends = [ufunc.reduce(numbers + shift, **along) for shift in (-off, off)]
        return np.max([np.abs(end - rules.floats(result)) for end in ends], axis=0), None
    is_rounded = unit_of(result.dtype) and ufunc not in _SELECTING
    rounding = result.dtype if is_rounded else None
    if ufunc is np.add:
        most = rules.largest(off)
        independent = most * np.sqrt(fold(np.square(off / most), **along))
        sums, sum_off = (fold(values, **along) for values in (np.abs(numbers), off))
        return rules.sum_errors(result, sums, sum_off, independent, count), rounding
    if ufunc is np.multiply:
        shares = off / np.where(numbers == 0, 1, np.abs(numbers))
        return np.abs(rules.floats(result)) * np.sqrt(fold(np.square(shares), **along)), rounding
    return (None if errors is None or not off.size else largest(off, **along)), rounding


_KINDS: Final[dict[Any, Callable[[Any, Any, Array], _State]]] = {
    np.matmul: _product,
    **dict.fromkeys(_COMPARING, _compared),
    **dict.fromkeys(_LOGIC, _logical),
    **dict.fromkeys(_SELECTING, _selected),
    **dict.fromkeys(_SIGNS, _signed),
    **dict.fromkeys(_TESTS, lambda *_: (None, None)),
}
"""Rules for functions that do not round, and for products."""


def _put(target: TrackedArray, key: Any, more: Sequence[Any]) -> None:
    """Add the errors of the numbers that ``ufunc.at`` joined with ``target``."""
    error = target.off()
    whole = np.array(np.broadcast_to(0.0 if error is None else error, target.shape), rules.FLOAT)
    for added in _errors_of(more):
        if added is not None:
            np.add.at(whole, key, added)
    target.error, target.rounding, target.kin = whole, target.dtype, None


def _move(func: Any, args: Any, kwargs: Any) -> Any:
    """Call a function that only moves numbers: first with the numbers, then with their errors."""
    tracked: list[TrackedArray] = []

    def converted(value: Any, of: Callable[[TrackedArray], Any] | None) -> Any:
        if isinstance(value, TrackedArray):
            tracked.append(value)
            return value.view(np.ndarray) if of is None else np.broadcast_to(of(value), value.shape)
        if isinstance(value, (tuple, list)):
            return type(value)([converted(item, of) for item in value])
        if of is not None and isinstance(value, (np.ndarray, np.generic, float)):
            array = np.asarray(value)
            return np.zeros(array.shape, rules.FLOAT) if rules.is_float(array.dtype) else value
        return value

    def called(of: Callable[[TrackedArray], Any] | None) -> Any:
        return func(
            *(converted(arg, of) for arg in args),
            **{k: converted(v, of) for k, v in kwargs.items()},
        )

    result = called(None)
    sources = tracked[:]
    error: Any = None
    rounding: Any = _widest([source.rounding for source in sources])
    if any(source.error is not None or source.kin is not None for source in sources):
        error = called(_before)
    if any(isinstance(source.rounding, np.ndarray) for source in sources):
        rounding = called(_as_array)
    if isinstance(result, (list, tuple)):
        errors = [None] * len(result) if error is None else error
        roundings = rounding if isinstance(rounding, (list, tuple)) else [rounding] * len(result)
        return type(result)(map(_tracked, result, errors, roundings))
    return _tracked(result, error, rounding)


def _before(source: TrackedArray) -> Any:
    error = source.off() if source.kin is not None else source.error
    return 0.0 if error is None else error


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return np.where(_plain(condition))
    x, y = choices
    result = _move(np.where, (_plain(condition), *choices), {})
    flips = condition.error if isinstance(condition, TrackedArray) else None
    if flips is None or not flips.any():
        return result
    either = np.abs(rules.floats(x) - rules.floats(y)) / rules.JUMP
    for error in _errors_of(choices):
        either = either if error is None else either + error
    off = result.off()
    error = np.where(flips > 0, either, 0.0 if off is None else off)
    return _tracked(_plain(result), error, None)


def _extreme(func: Any, sign: int) -> Callable[..., Any]:
    def place(x: Any, axis: int | None = None, **kwargs: Any) -> Any:
        result = func(_plain(x), axis=axis, **kwargs)
        off = x.off() if isinstance(x, TrackedArray) else None
        if off is None or axis is None:
            return result
        numbers, off = sign * rules.floats(x), np.broadcast_to(off, x.shape)
        kept = np.expand_dims(func(_plain(x), axis=axis), axis)
        best, doubt = (np.take_along_axis(values, kept, axis) for values in (numbers, off))
        reached = numbers + rules.REACH * off >= best - rules.REACH * doubt
        sizes = [1] * numbers.ndim
        sizes[axis] = -1
        places = np.arange(numbers.shape[axis]).reshape(sizes)
        away = np.max(np.where(reached, np.abs(places - kept), 0), axis=axis)
        if not away.any():
            return result
        return _tracked(result, away.reshape(np.shape(result)) / rules.JUMP, None)

    return place


def _sorted_places(x: Any, axis: int = -1, **kwargs: Any) -> Any:
    places = np.argsort(_plain(x), axis=axis, **kwargs)
    off = x.off() if isinstance(x, TrackedArray) else None
    if off is None:
        return places
    numbers, off = (
        np.moveaxis(np.take_along_axis(values, places, axis), axis, -1)
        for values in (rules.floats(x), np.broadcast_to(off, x.shape))
    )
    tied = np.diff(numbers) <= rules.REACH * (off[..., 1:] + off[..., :-1])
    if not tied.any():
        return places
    error = np.zeros(numbers.shape, rules.FLOAT)
    error[..., 1:] += tied
    error[..., :-1] += tied
    error = np.where(error > 0, numbers.shape[-1] / rules.JUMP, 0)
    return _tracked(places, np.moveaxis(error, -1, axis), None)


def _taken_along(x: Any, places: Any, axis: int = -1) -> Any:
    taken = _move(np.take_along_axis, (x, _plain(places)), {"axis": axis})
    doubt = places.error if isinstance(places, TrackedArray) else None
    if doubt is None or not doubt.any():
        return taken
    numbers, off = rules.floats(x), rules.zeroed(taken.off())
    if _are_extremes(rules.floats(taken), numbers, axis):
        # If close numbers swap places, the n-th largest number changes by their errors only.
        return _tracked(_plain(taken), 2 * off, None)
    spread = numbers.max(axis=axis, keepdims=True) - numbers.min(axis=axis, keepdims=True)
    return _tracked(_plain(taken), np.where(doubt > 0, spread / rules.JUMP, 0) + off, None)


def _are_extremes(taken: Array, numbers: Array, axis: int) -> bool:
    """Return whether ``taken`` has the smallest or the largest of ``numbers``, in their order."""
    ranked = np.moveaxis(np.sort(numbers, axis), axis, -1)
    taken = np.moveaxis(taken, axis, -1)
    count = taken.shape[-1]
    ends = ranked[..., :count], ranked[..., ::-1][..., :count]
    return count > 1 and any(np.array_equal(taken, end) for end in ends)


_FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.where: _where,
    np.argmax: _extreme(np.argmax, 1),
    np.argmin: _extreme(np.argmin, -1),
    np.argsort: _sorted_places,
    np.take_along_axis: _taken_along,
}

_UNTRACKED: Final = {np.zeros_like, np.ones_like, np.full_like, np.empty_like}

_MOVING: Final = {
    np.array_split,
    np.broadcast_to,
    np.column_stack,
    np.concatenate,
    np.diagonal,
    np.expand_dims,
    np.flip,
    np.hstack,
    np.lib.stride_tricks.sliding_window_view,
    np.moveaxis,
    np.pad,
    np.ravel,
    np.repeat,
    np.reshape,
    np.roll,
    np.split,
    np.squeeze,
    np.stack,
    np.swapaxes,
    np.take,
    np.tile,
    np.transpose,
    np.tril,
    np.triu,
    np.vstack,
}
"""Functions that return numbers of their operands at other places."""
