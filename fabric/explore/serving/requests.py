"""Requests of a server: read from a table, drawn at random, and scaled to a load."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric.graph.arguments.described import Described, refuse
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.files import open_given
from fabric.messages.text import a_or_an, counted, found_text

_ARRIVALS: Final = ("arrival_seconds", "arrival_ns", "TIMESTAMP")
_PROMPTS: Final = ("prompt_tokens", "ContextTokens")
_OUTPUTS: Final = ("output_tokens", "GeneratedTokens")
_HEADER: Final = "arrival_seconds,prompt_tokens,output_tokens"
_MOST_TOKENS: Final = 2**31 - 1
_LATEST_SECONDS: Final = 4e9
"""float64 resolves later times to no better than half a microsecond."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FRACTION: Final = re.compile(r"([T ][\d:]+)[.,](\d*)(?![.,\d])")
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True)
class Requests(Described):
    """Requests in the order of arrival.

    Attributes:
        arrival_seconds: [requests], float64, ascending, at least 0.
        prompt_tokens: [requests], int64, at least 1 each.
        output_tokens: [requests], int64, number of generated tokens, at least 1 each.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    arrival_seconds: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]

    @override
    def __post_init__(self) -> None:
        """Convert arrays, lists or iterators, and check the numbers.

        Raises:
            ConfigurationError: the table is empty, the columns differ in length, a request lacks a
                prompt or an output, or arrivals are not ascending from 0.
        """
        super().__post_init__()
        if not self.arrival_seconds.size:
            raise ConfigurationError("there are no requests: expected at least one")
        count = self.arrival_seconds.size
        for name, kinds, dtype, item in (
            ("arrival_seconds", "iuf", np.float64, "number"),
            ("prompt_tokens", "iu", np.int64, "integer"),
            ("output_tokens", "iu", np.int64, "integer"),
        ):
            array = getattr(self, name)
            if array.shape != (count,) or array.dtype.kind not in kinds:
                expected = counted(count, item)
                refuse(
                    f"Requests: {name} is {found_text(array)}: expected {expected}", self.refusal
                )
            object.__setattr__(self, name, array.astype(dtype, copy=False))
        for number, (at, prompt, output) in enumerate(self.rows()):
            _check(f"request {number}", at, prompt, output)
            if number and at < self.arrival_seconds[number - 1]:
                raise ConfigurationError(
                    f"request {number} arrives at {at:g} s, after one that arrives at "
                    f"{self.arrival_seconds[number - 1]:g} s: expected ascending times"
                )

    def __len__(self) -> int:
        return len(self.arrival_seconds)

    def rows(self) -> Iterator[tuple[float, int, int]]:
        """Yield arrival, prompt and output of each request."""
        columns = self.arrival_seconds, self.prompt_tokens, self.output_tokens
        return zip(*(each.tolist() for each in columns), strict=True)

    @property
    def per_second(self) -> float:
        """Requests a second from the first arrival to the last; infinite for one arrival time."""
        span = float(self.arrival_seconds[-1] - self.arrival_seconds[0])
        return (len(self) - 1) / span if span > 0 else math.inf

    def first(self, count: int) -> Requests:
        return Requests(
            self.arrival_seconds[:count], self.prompt_tokens[:count], self.output_tokens[:count]
        )

    def at_rate(self, per_second: float) -> Requests:
        """Return the requests with all times between arrivals scaled by one factor.

        ``per_second`` is the rate from the first arrival to the last.

        Raises:
            ConfigurationError: the rate is not above 0, or all arrive at one time.
        """
        _check_rate(per_second)
        now = self.per_second
        if math.isinf(now):
            raise ConfigurationError(
                "all requests arrive at one time, which no factor scales to a rate: expected "
                "different times, or a Poisson process"
            )
        first = self.arrival_seconds[0]
        times = (self.arrival_seconds - first) * (now / per_second)
        return Requests(times, self.prompt_tokens, self.output_tokens)

    def poisson(self, per_second: float, count: int, seed: int) -> Requests:
        """Return ``count`` requests of a Poisson process, with pairs of lengths from ``self``.

        For another rate with the same seed, the same draws are scaled.

        Raises:
            ConfigurationError: the rate is not above 0.
        """
        _check_rate(per_second)
        random = np.random.default_rng(seed)
        times = np.cumsum(random.exponential(1.0, count)) / per_second
        drawn = random.integers(len(self), size=count)
        return Requests(times, self.prompt_tokens[drawn], self.output_tokens[drawn])


def read_requests(path: Path | str) -> Requests:
    """Read a table of requests.

    The table is CSV, gzipped or not. Its header names a column of arrivals (``arrival_seconds``,
    ``arrival_ns`` or ``TIMESTAMP``, a date and time), a column of prompts (``prompt_tokens`` or
    ``ContextTokens``) and a column of outputs (``output_tokens`` or ``GeneratedTokens``). Other
    columns are ignored. Dates become seconds since the first arrival.

    Raises:
        ConfigurationError: the file cannot be read, a column is missing, a row is malformed, or
            arrivals do not ascend.
    """
    file = str(path)
    rows = csv.reader(io.StringIO(table_text(Path(path), "a table of requests"), newline=""))
    columns = _columns(next(rows, []), file)
    times: list[float | Decimal] = []
    prompts: list[int] = []
    outputs: list[int] = []
    for row in rows:
        line = rows.line_num
        if not row:
            continue
        try:
            at, prompt, output = _request(row, columns, line)
            if times and at < times[-1]:
                early = float(Decimal(times[-1]) - Decimal(at))
                raise ConfigurationError(
                    f"line {line} arrives {early:g} s before the line above it: "
                    "expected ascending times"
                )
        except ConfigurationError as error:
            raise ConfigurationError(error.message, file=file, line=line) from None
        times.append(at)
        prompts.append(prompt)
        outputs.append(output)
    if not times:
        raise ConfigurationError("has no requests: expected a row for each", file=file)
    if columns[3] == "TIMESTAMP":
        # Decimal until here, because float64 resolves seconds since 1970 to 0.2 microseconds.
        times = [Decimal(each) - Decimal(times[0]) for each in times]
    arrivals = np.array(times, dtype=np.float64)
    return Requests(arrivals, np.array(prompts, np.int64), np.array(outputs, np.int64))


def table_text(path: Path, expected: str) -> str:
    """Return the text of a table, gzipped or not; ``expected`` describes the table in errors."""
    try:
        with open_given(path) as opened:
            content = opened.read()
        if content[:2] == _GZIP:
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"cannot be read ({reason}): expected {expected}", file=str(path)
        ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"is not UTF-8 text: expected {expected}", file=str(path)
        ) from None


def _columns(header: Sequence[str], file: str) -> tuple[int, int, int, str]:
    names = [each.strip() for each in header]
    columns = []
    for spellings in (_ARRIVALS, _PROMPTS, _OUTPUTS):
        present = [each for each in spellings if each in names]
        if not present:
            raise ConfigurationError(
                f"its first line names no {' or '.join(spellings)}: expected a header such as "
                f"{_HEADER}",
                file=file,
                line=1,
            )
        columns.append(present[0])
    at, prompt, output = map(names.index, columns)
    return at, prompt, output, columns[0]


def _request(
    row: Sequence[str], columns: tuple[int, int, int, str], line: int
) -> tuple[float | Decimal, int, int]:
    at, prompt, output, kind = columns
    if len(row) <= max(at, prompt, output):
        raise ConfigurationError(
            f"line {line} has {counted(len(row), 'column')}: expected one for each of the header"
        )
    seconds = _seconds(row[at], kind, line)
    lengths = _tokens(row[prompt], line), _tokens(row[output], line)
    # A date may be before 1970.
    _check(f"line {line}", 0 if isinstance(seconds, Decimal) else seconds, *lengths)
    return seconds, *lengths


def _seconds(text: str, kind: str, line: int) -> float | Decimal:
    try:
        if kind == "TIMESTAMP":
            return _seconds_since_1970(text.strip())
        return float(text) / (1e9 if kind == "arrival_ns" else 1)
    except ValueError:
        raise ConfigurationError(f"line {line} has {text!r} as {kind}: expected a time") from None


def _seconds_since_1970(text: str) -> Decimal:
    # datetime drops the seventh digit after the point and all later ones.
    fraction = _FRACTION.search(text)
    moment = dt.datetime.fromisoformat(_FRACTION.sub(r"\1", text, count=1))
    since = (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - _EPOCH
    whole = Decimal(since // dt.timedelta(microseconds=1)).scaleb(-6)
    return whole + Decimal(f"0.{fraction[2]}" if fraction else 0)


def _tokens(text: str, line: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(
            f"line {line} has {text!r} as tokens: expected a whole number"
        ) from None


def _check(place: str, at: float, prompt: int, output: int) -> None:
    if not 0 <= at <= _LATEST_SECONDS:
        raise ConfigurationError(
            f"{place} arrives at {at:g} s: expected a time from 0 to {_LATEST_SECONDS:g} s"
        )
    for name, count in (("prompt", prompt), ("output", output)):
        if not 1 <= count <= _MOST_TOKENS:
            raise ConfigurationError(
                f"{place} has {a_or_an(name)} of {counted(count, 'token')}: "
                f"expected 1 to {_MOST_TOKENS:,}"
            )


def _check_rate(per_second: float) -> None:
    if not 0 < per_second < math.inf:
        raise ConfigurationError(f"the rate is {per_second:g} a second: expected above 0")
