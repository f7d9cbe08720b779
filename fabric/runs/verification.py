"""What became of the outputs that a program expects: plain data, as the report keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from fabric.telling.plain import JsonObject

__all__ = ["Mismatch", "Number", "OutputVerification", "Verification"]

Number: TypeAlias = bool | int | float

_COMPARED: Final = ("elements", "mismatched", "worst", "places", "outputs", "unexpected")


class Mismatch(NamedTuple):
    """An element that is wrong.

    Attributes:
        index: where in the output.
        found: what was stored there.
        wanted: what should have been.
    """

    index: tuple[int, ...]  # type: ignore[assignment]  # hides tuple's own
    found: Number
    wanted: Number

    def sentence(self) -> str:
        """Say it; two numbers that differ are never shown alike."""
        shown = [_short(number) for number in (self.found, self.wanted)]
        if shown[0] == shown[1]:
            shown = [str(self.found), str(self.wanted)]
        return f"{list(self.index)} is {shown[0]}: expected {shown[1]}"


@dataclass(frozen=True, kw_only=True)
class OutputVerification:
    """One output, compared element by element with what the program expects.

    An element is right where it is within ``atol + rtol * |wanted|``.

    Attributes:
        output: its name.
        dtype: element type of what was stored.
        shape, wanted_shape: of what was stored, and expected; where they differ all is wrong.
        elements: compared.
        mismatched: of them, those that are wrong.
        rtol, atol: the tolerance that held, given or derived from the element type.
        absolute_error: the largest of all elements; infinite where a NaN or infinity is wrong.
        relative_error: the largest where a finite number but 0 is expected; None without any.
        places: the first elements that are wrong, in row-major order.
    """

    output: str
    dtype: str
    shape: tuple[int, ...]
    wanted_shape: tuple[int, ...]
    elements: int = 0
    mismatched: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    absolute_error: float = 0.0
    relative_error: float | None = None
    places: tuple[Mismatch, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the output is as expected."""
        return self.shape == self.wanted_shape and not self.mismatched

    def lines(self) -> tuple[str, ...]:
        """Say what is wrong: how much of it, and the first places."""
        name = f"output {self.output!r}"
        if self.shape != self.wanted_shape:
            shape, expected = list(self.shape), list(self.wanted_shape)
            return (f"{name} has shape {shape}: expected {expected}",)
        relative = "" if self.relative_error is None else f", relative {self.relative_error:.3g}"
        within = "equal numbers"
        if self.rtol or self.atol:
            within = f"at most {self.atol:.3g} + {self.rtol:.3g} * |wanted|"
        more = self.mismatched - len(self.places)
        return (
            f"{name}: {self.mismatched:,} of {self.elements:,} elements wrong, largest error "
            f"{self.absolute_error:.6g}{relative}: expected {within} ({self.dtype})",
            *(f"  {place.sentence()}" for place in self.places),
            *((f"  {more:,} more",) if more else ()),
        )


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What a program's outputs were, beside what it expects of them.

    Attributes:
        not_verified: why nothing was compared, such as ``timing mode``; None where it was.
        outputs: one by one, in the order of ``expect``.
        unexpected: names of outputs that were stored and that the program says nothing of.
    """

    not_verified: str | None = None
    outputs: tuple[OutputVerification, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def verified(self) -> bool | None:
        """Whether all outputs are as expected; None where they were not compared."""
        return None if self.not_verified else all(each.agrees for each in self.outputs)

    @property
    def elements(self) -> int:
        """How many were compared."""
        return sum(each.elements for each in self.outputs)

    @property
    def mismatched(self) -> int:
        """How many of them are wrong."""
        return sum(each.mismatched for each in self.outputs)

    def lines(self) -> tuple[str, ...]:
        """Say what is wrong; nothing where nothing is."""
        return tuple(line for each in self.outputs if not each.agrees for line in each.lines())

    def warnings(self) -> list[str]:
        """Say which outputs could be anything: being verified is not about them."""
        return [
            f"output {name!r} is not verified: expected another expect({name}=...)"
            for name in self.unexpected
        ]

    def as_json(self) -> JsonObject:
        """Return the field ``verification`` of ``run --json``; null for what was not compared."""
        if self.not_verified:
            return {"not_verified": self.not_verified, **dict.fromkeys(_COMPARED)}
        relative = [each.relative_error for each in self.outputs if each.relative_error is not None]
        return {
            "not_verified": None,
            "elements": self.elements,
            "mismatched": self.mismatched,
            "worst": {
                "absolute_error": max((each.absolute_error for each in self.outputs), default=0.0),
                "relative_error": max(relative, default=None),
            },
            "places": [
                {"output": each.output, **place._asdict()}
                for each in self.outputs
                for place in each.places
            ],
            "outputs": [
                {
                    "output": each.output,
                    "dtype": each.dtype,
                    "shape": each.shape,
                    "wanted_shape": each.wanted_shape,
                    "elements": each.elements,
                    "mismatched": each.mismatched,
                    "rtol": each.rtol,
                    "atol": each.atol,
                    "absolute_error": each.absolute_error,
                    "relative_error": each.relative_error,
                }
                for each in self.outputs
            ],
            "unexpected": self.unexpected,
        }


def _short(number: Number) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)
