"""What can be imported, of a module and at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from operators.kernels.schedule import Schedule
from operators.torch.capture import capture
from operators.torch.choices import Choices
from operators.torch.planning import planned
from operators.torch.registry import Unsupported, importer_of, supported


class Listing(NamedTuple):
    """The calls of a module.

    Attributes:
        calls: how many depend on data.
        unsupported: those that cannot be imported, in the order of the calls.
    """

    calls: int
    unsupported: tuple[Unsupported, ...]


def unsupported_calls(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> tuple[Unsupported, ...]:
    """Return all calls of a module that ``from_torch`` cannot import, in their order.

    A call behind another one that cannot be imported is among them only where nobody imports such
    calls at all: whether it could be is not known before.

    Args:
        module: in evaluation mode.
        args: that it is called with.
        kwargs: that it is called with, by name.
    """
    return listed(module, args, kwargs or {}).unsupported


def listed(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Listing:
    """Return how many calls a module makes, and which of them cannot be imported."""
    captured = capture(module, args, kwargs)
    found = planned(captured, Schedule(), Choices(captured, None))
    return Listing(found.calls, tuple(found.missing))


def families() -> dict[str, list[str]]:
    """Return the calls that are imported, by family, both in alphabetical order."""
    found: dict[str, list[str]] = defaultdict(list)
    for target in supported():
        importer = importer_of(target)
        module = "" if importer is None else importer.__module__
        found[module.rpartition(".")[2] or "tokens of experts"].append(target)
    return dict(sorted(found.items()))
