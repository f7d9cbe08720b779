"""Compare what a program stored with what it says it should have stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from fabric.errors import ProgramError
from fabric.program import Program

__all__ = ["mismatches"]

_RELATIVE_TOLERANCE: Final = {
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 4e-2,
    "float8_e4m3fn": 0.3,
    "float8_e5m2": 0.5,
}


def mismatches(program: Program, stored: Mapping[str, Any]) -> list[str] | None:
    """Return a sentence for every stored output that is wrong; None where nothing is expected.

    Numbers may differ by the rounding of the element type, relative to the largest expected one.

    Raises:
        ProgramError: an output is expected that no operator stores.
    """
    if not program.expected:
        return None
    return [
        sentence
        for name, expected in program.expected.items()
        if (sentence := _compare(program, name, expected, stored)) is not None
    ]


def _compare(
    program: Program, name: str, expected: Callable[[], Any], stored: Mapping[str, Any]
) -> str | None:
    if name not in stored:
        known = ", ".join(sorted(stored)) or "nothing"
        raise ProgramError(
            f"program {program.name!r} expects an output {name!r}, but stores {known}",
            file=program.place.file,
            line=program.place.line,
        )
    found = np.asarray(stored[name])
    tolerance = _RELATIVE_TOLERANCE.get(found.dtype.name, 0.0)
    wanted = np.asarray(program.ask(f"expect({name}=...)", expected)).astype(np.float64)
    found = found.astype(np.float64)
    if found.shape != wanted.shape:
        return f"output {name!r} has shape {found.shape}: expected {wanted.shape}"
    if not found.size:
        return None
    error = np.abs(found - wanted)
    scale = float(np.max(np.abs(wanted)))
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    if error[where] <= tolerance * scale:
        return None
    return (
        f"output {name!r} at {list(where)} is {found[where]:g}: expected {wanted[where]:g} "
        f"within {tolerance * scale:g}"
    )
