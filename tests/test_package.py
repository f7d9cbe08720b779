"""What holds for every module of the package."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec

import msgspec

import fabric
import fabric.extend
import operators


def _classes() -> Iterator[type]:
    for package in (fabric, operators):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if each.name.startswith("operators.torch") and find_spec("torch") is None:
                continue  # the extra is not installed
            if not each.name.endswith("__main__"):
                module = importlib.import_module(each.name)
                members = inspect.getmembers(module, inspect.isclass)
                yield from (kind for _, kind in members if kind.__module__ == each.name)


def _is_frozen(kind: type) -> bool:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_config__.frozen
    return not dataclasses.is_dataclass(kind) or bool(
        kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    )


def test_descriptions_are_frozen() -> None:
    """Whoever is given a description can keep it: nobody changes it."""
    classes = list(_classes())

    assert len(classes) > 150
    assert [] == [f"{kind.__module__}.{kind.__name__}" for kind in classes if not _is_frozen(kind)]


def test_facades() -> None:
    """What people need at first is a list that one can read, and a name has one home."""
    names, others = set(vars(fabric)["__all__"]), set(vars(fabric.extend)["__all__"])

    assert len(names) <= 60
    assert not names & others
    assert all(hasattr(fabric, name) for name in names)
    assert all(hasattr(fabric.extend, name) for name in others)
