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
    # A class that is not decorated has its base's method, which has only the base's attributes.
    own = vars(kind).get("__dataclass_params__")
    return own.frozen or not own.eq if own is not None else not dataclasses.is_dataclass(kind)


def test_dataclasses_and_structs_that_compare_by_value_are_frozen() -> None:
    classes = list(_classes())

    assert len(classes) > 150
    assert [] == [f"{kind.__module__}.{kind.__name__}" for kind in classes if not _is_frozen(kind)]


def test_overrides_of_properties_are_properties() -> None:
    # A method in place of a property would always be true.
    found = [
        f"{kind.__module__}.{kind.__name__}.{name}"
        for kind in _classes()
        for name, value in vars(kind).items()
        for base in kind.__mro__[1:]
        if inspect.isfunction(value) and isinstance(vars(base).get(name), property)
    ]
    assert found == []


def test_facades_have_few_names_and_share_none() -> None:
    names, others = set(vars(fabric)["__all__"]), set(vars(fabric.extend)["__all__"])

    assert len(names) <= 62
    assert not names & others
    assert all(hasattr(fabric, name) for name in names)
    assert all(hasattr(fabric.extend, name) for name in others)
