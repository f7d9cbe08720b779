"""How good what steps cost is, and what tells one cost from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fabric.arguments.described import Described
from fabric.serving.batch import Batch, Price
from fabric.telling.read_files import open_given

__all__ = ["Known", "Quality", "Sampled", "digest_of"]


@dataclass(frozen=True)
class Sampled:
    """A step as it was, and what it was taken to cost.

    Attributes:
        decode_requests: that generated.
        cache_tokens: the mean of their caches.
        prefill_tokens: of prompts.
        cycles: of a layer, interpolated.
        exact_cycles: of a layer, simulated.
    """

    decode_requests: int
    cache_tokens: float
    prefill_tokens: int
    cycles: float
    exact_cycles: float

    @property
    def percent_off(self) -> float:
        """By how much the interpolated time is above the simulated one."""
        return 100 * (self.cycles / self.exact_cycles - 1)


@dataclass(frozen=True)
class Quality:
    """How good the costs of a run's steps are.

    Attributes:
        outside: so many times a table was asked for what is beyond it, and gave its edge.
        sampled: steps that were simulated as they were.
    """

    outside: int = 0
    sampled: tuple[Sampled, ...] = ()


class Known(Protocol):
    """What steps cost, with what is known of it."""

    @property
    def identity(self) -> str:
        """A digest that others have only where they cost the same."""

    def cost(self, batches: Sequence[Batch]) -> Price:
        """Return what a step costs; see ``StepCost``."""

    def notes(self) -> Sequence[str]:
        """Return sentences on what these costs are."""

    def quality(self) -> Quality:
        """Return how good the costs of the steps since the last time are."""


def digest_of(described: Described, beside: object = None) -> str:
    """Return the digest of a description, with what is in its files, and of something beside it."""
    told = {name: _content(value) for name, value in vars(described).items()}
    return hashlib.sha256(json.dumps([told, beside], default=str).encode()).hexdigest()


def _content(value: object) -> object:
    if isinstance(value, Path):
        with open_given(value) as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    return dict(value) if isinstance(value, Mapping) else value
