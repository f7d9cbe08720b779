"""Listings of calls: of a module, with those that cannot be imported, and of all importers."""

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

    A call that depends on an unsupported call is listed only if it has no importer at all: its
    arguments are unknown.

    Args:
        module: in evaluation mode.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    return listed(module, args, kwargs or {}).unsupported


def listed(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Listing:
    """Return the number of calls of a module, and the unsupported calls."""
    captured = capture(module, args, kwargs)
    found = planned(captured, Schedule(), Choices(captured, None))
    return Listing(found.calls, tuple(found.missing))


def families() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for target in supported():
        importer = importer_of(target)
        module = "" if importer is None else importer.__module__
        found[module.rpartition(".")[2] or "tokens of experts"].append(target)
    return dict(sorted(found.items()))
