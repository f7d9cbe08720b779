"""What went wrong in an operator, as the error a user reads: who, what, in which line, when."""

from __future__ import annotations

from collections.abc import Iterable

from fabric.engine.ports import Ports
from fabric.telling.errors import OperatorError, Refusal, said
from fabric.telling.place import Place, defining_place, is_ours, raising_place
from fabric.wiring.behaviour import behaving_as
from fabric.wiring.operator import Operator

__all__ = ["blamed", "has_user_code", "users_among"]


def blamed(error: BaseException, operator: Operator, ports: Ports) -> OperatorError:
    """Return the error for what ``operator``, or a function it was given, raised."""
    place = raising_place(error) or _function_place(operator)
    if not isinstance(error, Refusal):
        return ports.failure(said(error), place)
    return ports.failure(str(error), error.place or place, counted=error.counted)


def users_among(operators: Iterable[Operator]) -> frozenset[int]:
    """Return the numbers of the ``operators`` that have a user's code.

    A program has thousands of operators, of a few classes with functions of a few.
    """
    known: dict[tuple[type, ...], bool] = {}
    found = set()
    for number, operator in enumerate(operators):
        kinds = (type(operator), *map(type, vars(operator).values()))
        users = known.get(kinds)
        if users is None:
            known[kinds] = users = has_user_code(operator)
        if users:
            found.add(number)
    return frozenset(found)


def has_user_code(operator: Operator) -> bool:
    """Whether what ``operator`` does, or a function it was given, is a user's."""
    return not is_ours(behaving_as(type(operator))) or _function_place(operator) is not None


def _function_place(operator: Operator) -> Place | None:
    """Return where the user's function that ``operator`` was given is defined, if there is one."""
    for given in vars(operator).values():
        for method in ("apply", "update"):
            place = defining_place(getattr(given, method, None))
            if place is not None:
                return place
    return None
