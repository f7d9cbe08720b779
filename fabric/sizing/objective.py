"""What depths cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fabric.telling.errors import ConfigurationError

__all__ = ["Objective"]


@dataclass(frozen=True)
class Objective:
    """The cost of a channel.

    Attributes:
        unit: ``bytes``, or ``slots`` whatever they hold.
        step_bytes: memory comes in blocks of so many, or as powers of two; 1 for any number.
    """

    unit: Literal["bytes", "slots"] = "bytes"
    step_bytes: int | Literal["power-of-two"] = 1

    @classmethod
    def parse(cls, unit: str, step: str | None) -> Objective:
        """Read them as they are written on the command line.

        Raises:
            ConfigurationError: they are none, or slots are rounded to bytes.
        """
        if unit not in ("bytes", "slots"):
            raise ConfigurationError(f"--objective {unit}: expected bytes or slots")
        if step is None:
            return cls("bytes" if unit == "bytes" else "slots")
        if unit == "slots":
            raise ConfigurationError(f"--step {step}: slots are counted: expected it with bytes")
        if step == "power-of-two":
            return cls("bytes", "power-of-two")
        if not step.isdecimal() or not 1 <= int(step[:20]) < 1 << 40:
            raise ConfigurationError(f"--step {step}: expected power-of-two or a number of bytes")
        return cls("bytes", int(step))

    def cost(self, depth: int, element_bytes: int) -> int:
        """Return the cost of a channel of ``depth`` slots of so many bytes each."""
        if self.unit == "slots":
            return depth
        size_bytes = depth * element_bytes
        if self.step_bytes == "power-of-two":
            return 1 << (size_bytes - 1).bit_length() if size_bytes else 0
        return -(-size_bytes // self.step_bytes) * self.step_bytes
