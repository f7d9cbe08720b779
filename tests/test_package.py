"""What holds for every module of the package."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

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
    # One that is not decorated itself has its base's, which takes only the base's attributes.
    own = vars(kind).get("__dataclass_params__")
    return own.frozen if own is not None else not dataclasses.is_dataclass(kind)


def test_descriptions_are_frozen() -> None:
    """Whoever is given a description can keep it: nobody changes it."""
    classes = list(_classes())

    assert len(classes) > 150
    assert [] == [f"{kind.__module__}.{kind.__name__}" for kind in classes if not _is_frozen(kind)]


def test_what_takes_the_place_of_a_property_is_one() -> None:
    """It is read like that of the base: a method would be true whatever it returns."""
    found = [
        f"{kind.__module__}.{kind.__name__}.{name}"
        for kind in _classes()
        for name, value in vars(kind).items()
        for base in kind.__mro__[1:]
        if inspect.isfunction(value) and isinstance(vars(base).get(name), property)
    ]
    assert found == []


def _default(value: object) -> str:
    return f"={value.__name__}" if callable(value) and hasattr(value, "__name__") else f"={value!r}"


def _promised(kind: type) -> str:
    """Return what a class is made from, how instances compare, and what their repr leaves out."""
    told = f"{kind.__module__}.{kind.__name__}"
    if not dataclasses.is_dataclass(kind):
        defaults: dict[str, object] = getattr(kind, "_field_defaults", {})
        return f"{told}({', '.join(f'{name}{_default(each)}' for name, each in defaults.items())})"
    own = [each for each in dataclasses.fields(kind) if each.name in inspect.get_annotations(kind)]
    given = [
        ("*" if each.kw_only else "")
        + each.name
        + ("" if each.default is dataclasses.MISSING else _default(each.default))
        for each in own
        if each.init
    ]
    told += f"({', '.join(given)})"
    if not kind.__dataclass_params__.eq:  # type: ignore[attr-defined]
        told += ", compared by identity"
    if not kind.__dataclass_params__.repr:  # type: ignore[attr-defined]
        return f"{told}, its own repr"
    hidden = [each.name for each in own if not each.repr]
    return f"{told}, hides {', '.join(hidden)}" if hidden else told


def test_what_classes_promise(golden: Callable[[str, str], None]) -> None:
    """Defaults, names that must be given, equality and repr change with intent only."""
    lines = sorted(
        _promised(kind)
        for kind in _classes()
        if "torch" not in kind.__module__
        and (dataclasses.is_dataclass(kind) or getattr(kind, "_field_defaults", None))
    )
    golden("classes.txt", "\n".join(lines) + "\n")


_UNLIKE = {
    "fabric.analysis.placing.picture": 1,
    "fabric.analysis.trace.analysis.stalls": 1,
    "fabric.analysis.trace.pages.page": 1,
    "fabric.explore.serving.folder": 1,
    "fabric.explore.sizing.checker": 1,
    "fabric.graph.layouts.layout": 1,
    "fabric.graph.layouts.reordering": 1,
    "fabric.graph.wiring.stream": 2,
    "fabric.shell.wiring_table": 1,
    "operators.bufferize": 1,
    "operators.expand": 1,
    "operators.kernels.routed": 1,
    "operators.kernels.tensors": 1,
    "operators.merge_join": 1,
    "operators.partition": 1,
    "operators.rtl.routing": 1,
    "operators.torch.planning": 1,
}
"""Modules that join what need not be as long, and how often."""


def test_what_is_joined_is_as_long() -> None:
    """``zip`` says that lengths are equal, except where they may differ for a reason."""
    found: Counter[str] = Counter()
    for package in (fabric, operators):
        root = Path(package.__path__[0])
        for file in root.rglob("*.py"):
            for each in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(each, ast.Call) and ast.unparse(each.func) == "zip":
                    said = {key.arg: ast.unparse(key.value) for key in each.keywords}
                    if said.get("strict") != "True":
                        found[str(file.relative_to(root.parent).with_suffix(""))] += 1
    assert {name.replace("/", "."): count for name, count in found.items()} == _UNLIKE


def test_facades() -> None:
    """What people need at first is a list that one can read, and a name has one home."""
    names, others = set(vars(fabric)["__all__"]), set(vars(fabric.extend)["__all__"])

    assert len(names) <= 60
    assert not names & others
    assert all(hasattr(fabric, name) for name in names)
    assert all(hasattr(fabric.extend, name) for name in others)
