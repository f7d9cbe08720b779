"""Whose behaviour an operator has: its class's own, or that of a class it leaves as it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from fabric.arguments.described import Described
from fabric.wiring.operator import Operator

__all__ = ["behaving_as", "is_conducted"]


def is_conducted(kind: type[Operator]) -> bool:
    """Whether operators of class ``kind`` are conducted; see ``Operator.conducted``."""
    return bool(vars(behaving_as(kind)).get("conducted", False))


def behaving_as(kind: type[Operator]) -> type[Operator]:
    """Return the class whose ``run`` does the same as that of ``kind``, all it may use included.

    It is one that states whether its operators are conducted: ``kind`` itself, or a base of which
    ``kind`` overrides nothing but how an operator is made, its types, its costs and what is said
    of it. Where there is none, it is ``kind``.
    """
    for base in kind.__mro__:
        if not issubclass(base, Operator) or "conducted" not in vars(base):
            continue
        if base is kind or _is_unchanged(kind, base):
            return base
    return kind


def _is_unchanged(kind: type[Operator], base: type[Operator]) -> bool:
    defaults = {field.name for field in fields(base)}
    besides = _besides()
    for name in type.__dir__(base):  # all of it: dir() lists what users need
        if name in besides:
            continue
        found = _found(kind, name)
        # Instances have their own values of fields; a property in the place of one is code.
        if found is not _found(base, name) and (
            name not in defaults or hasattr(type(found), "__get__")
        ):
            return False
    return True


def _found(kind: type, name: str) -> object:
    """Return what ``kind`` has under ``name``, as it stands there: no descriptor is asked."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)


@cache
def _besides() -> frozenset[str]:
    """Return the names of what ``run`` does not use."""

    @dataclass(frozen=True)
    class Plain(Described):
        """Has what Python and ``dataclass`` give every description, and nothing else."""

        field: int = 0

    others = ("__post_init__", "__call__", "infer", "costs", "work", "duties", "refusal")
    return frozenset((*vars(Plain), *others, "is_users"))
