"""Lists of calls: the unsupported calls of a module, and all calls that have an importer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch

from operators.kernels.schedule import Schedule
from operators.torch.capture import capture
from operators.torch.choices import Choices
from operators.torch.planning import Planned, planned
from operators.torch.registry import Unsupported, importer_of, supported


def unsupported_calls(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> tuple[Unsupported, ...]:
    """Return all calls of a module that ``from_torch`` cannot import, in their order.

    The arguments of a call behind an unsupported call are unknown. Such a call is listed only if it
    has no importer.

    Args:
        module: in evaluation mode.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    return tuple(plan_of(module, args, kwargs or {}).missing)


def plan_of(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Planned:
    captured = capture(module, args, kwargs)
    return planned(captured, Schedule(), Choices(captured, None))


def families() -> dict[str, list[str]]:
    targets: dict[str, list[str]] = defaultdict(list)
    for target in supported():
        importer = importer_of(target)
        module = "" if importer is None else importer.__module__
        targets[module.rpartition(".")[2] or "tokens of experts"].append(target)
    return dict(sorted(targets.items()))
