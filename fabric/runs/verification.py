"""Results of comparisons with expected outputs, as plain data of the report."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal, NamedTuple, TypeAlias

from fabric.messages.text import JsonObject, counted

Number: TypeAlias = bool | int | float

_ELSEWHERE: Final = ("kind", "output", "misfit", "places")
"""Fields that are not in the JSON object of an output, or have another name there."""


class Mismatch(NamedTuple):
    """A wrong element.

    Attributes:
        index: of the element in the output or the tile.
        tile: the index of the tile in the stream; None for an output.
        allowed: the largest allowed error.
    """

    index: tuple[int, ...]  # type: ignore[assignment]  # hides tuple's own
    found: Number
    wanted: Number
    tile: tuple[int, ...] | None = None
    allowed: float = 0.0

    def sentence(self) -> str:
        """Return a sentence, with enough digits that the two numbers differ."""
        shown = [_short(number) for number in (self.found, self.wanted)]
        if shown[0] == shown[1]:
            shown = [str(self.found), str(self.wanted)]
        tile = "" if self.tile is None else f"tile {list(self.tile)} at "
        around = f" ± {self.allowed:.3g}" if self.allowed else ""
        return f"{tile}{list(self.index)} is {shown[0]}: expected {shown[1]}{around}"


class Errors(NamedTuple):
    """The largest ratio of error to bound: of an element, of a row and of the whole.

    The errors of rows and of the whole are root mean squares.
    """

    element: float
    row: float
    whole: float


@dataclass(frozen=True, kw_only=True)
class OutputVerification:
    """A comparison of an output or a stream with its expected elements.

    The run estimates the error of each number, from the loads to the stores. Rows of fewer than 16
    numbers are averaged together.

    Attributes:
        dtype: the stored element type.
        shape, wanted_shape: of an output; for a stream, the number of tiles.
        misfit: the difference in number or size of tiles, or None.
        elements, mismatched: the numbers of compared and of wrong elements.
        used: the largest ratios of errors to their bounds, at most 1 if right.
        rtol, atol: the program's tolerances; None if the bound follows from the estimated errors.
        absolute_error: the largest error; infinite for a wrong NaN or infinity.
        relative_error: the largest error of finite nonzero numbers, or None without such numbers.
        places: the first wrong elements, or the largest error of the worst row.
    """

    kind: Literal["output", "stream"] = "output"
    output: str
    dtype: str
    shape: tuple[int, ...]
    wanted_shape: tuple[int, ...]
    misfit: str | None = None
    elements: int = 0
    mismatched: int = 0
    used: Errors = Errors(0.0, 0.0, 0.0)  # noqa: RUF009 - it cannot be changed
    rtol: float | None = 0.0
    atol: float | None = 0.0
    absolute_error: float = 0.0
    relative_error: float | None = None
    places: tuple[Mismatch, ...] = ()

    @property
    def agrees(self) -> bool:
        alike = self.shape == self.wanted_shape and self.misfit is None
        return alike and not self.mismatched and max(self.used.row, self.used.whole) <= 1

    def lines(self) -> tuple[str, ...]:
        """Return a line with the number of wrong elements, and lines with the first ones."""
        name = f"output {self.output!r}" if self.kind == "output" else f"stream {self.output}"
        if self.misfit is not None:
            return (f"{name}: {self.misfit}",)
        if self.shape != self.wanted_shape:
            shape, expected = list(self.shape), list(self.wanted_shape)
            return (f"{name} has shape {shape}: expected {expected}",)
        more = max(0, self.mismatched - len(self.places))
        return (
            f"{name}: {self._sentence()} ({self.dtype})",
            *(f"  {place.sentence()}" for place in self.places),
            *((f"  {more:,} more",) if more else ()),
        )

    def _sentence(self) -> str:
        if self.mismatched:
            relative = (
                "" if self.relative_error is None else f", relative {self.relative_error:.3g}"
            )
            within = "equal numbers"
            if None in (self.rtol, self.atol):
                within = "at most what roundings explain"
            elif self.rtol or self.atol:
                within = f"at most {self.atol:.3g} + {self.rtol:.3g} * |wanted|"
            return (
                f"{self.mismatched:,} of {counted(self.elements, 'element')} wrong, largest error "
                f"{self.absolute_error:.6g}{relative}: expected {within}"
            )
        of, used = ("a row", self.used.row) if self.used.row > 1 else ("all rows", self.used.whole)
        return (
            f"the root mean square of the errors in {of} is {used:.3g} times the limit of what "
            "roundings explain: expected at most 1"
        )

    def as_json(self) -> JsonObject:
        """Return the item of ``outputs`` or ``streams`` in the field ``verification``."""
        fields = {key: value for key, value in vars(self).items() if key not in _ELSEWHERE}
        return {self.kind: self.output, **fields, "used": self.used._asdict()}


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The comparisons of a run.

    Attributes:
        not_verified: why nothing was compared, such as ``timing mode``; None if it was.
        exact: floats were kept in float64, and errors may be 1e-9 of a number.
        streams: in wiring order.
        outputs: in the order of the calls of ``expect``.
        unexpected: names of stored outputs without an expectation.
    """

    not_verified: str | None = None
    exact: bool = False
    streams: tuple[OutputVerification, ...] = ()
    outputs: tuple[OutputVerification, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[OutputVerification, ...]:
        return (*self.streams, *self.outputs)

    @property
    def verified(self) -> bool | None:
        """Whether all is as expected; None without a comparison."""
        return None if self.not_verified else all(output.agrees for output in self.compared)

    @property
    def closeness(self) -> str:
        """A description of the largest error of a right result; empty if wrong or not compared."""
        if not self.compared or not self.verified:
            return ""
        worst = max(self.compared, key=lambda output: max(output.used))
        if not max(worst.used):
            return "every element equal"
        allowed = "its bound" if self.exact else f"what {worst.dtype} allows"
        if worst.rtol or worst.atol:
            allowed = "its tolerance"
        return f"at most {ceil(100 * max(worst.used))} % of {allowed}"

    @property
    def elements(self) -> int:
        return sum(output.elements for output in self.compared)

    @property
    def mismatched(self) -> int:
        return sum(output.mismatched for output in self.compared)

    def lines(self) -> tuple[str, ...]:
        wrong = (output for output in self.compared if not output.agrees)
        return tuple(line for output in wrong for line in output.lines())

    def warnings(self) -> list[str]:
        """Return sentences about stored outputs without an expectation."""
        return [
            f"output {name!r} is not verified: expected another expect({name}=...)"
            for name in self.unexpected
        ]

    def as_json(self) -> JsonObject:
        """Return the field ``verification`` of ``run --json``; nulls if nothing is compared."""
        relative = [
            output.relative_error for output in self.compared if output.relative_error is not None
        ]
        document = {
            "not_verified": None,
            "elements": self.elements,
            "mismatched": self.mismatched,
            "worst": {
                "absolute_error": max((o.absolute_error for o in self.compared), default=0.0),
                "relative_error": max(relative, default=None),
                "used": max((max(o.used) for o in self.compared), default=0.0),
            },
            "places": [
                {output.kind: output.output, **place._asdict()}
                for output in self.compared
                for place in output.places
            ],
            "streams": [output.as_json() for output in self.streams],
            "outputs": [output.as_json() for output in self.outputs],
            "unexpected": self.unexpected,
        }
        if self.not_verified:
            document = dict.fromkeys(document) | {"not_verified": self.not_verified}
        return document


def _short(number: Number) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)
