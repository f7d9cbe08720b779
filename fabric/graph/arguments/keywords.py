"""Functions whose keywords are the fields of a description: several take the same, stated once."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import wraps

# Any: whatever the fields of a description take; they are checked.
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from fabric.graph.arguments.checks import Check
from fabric.graph.arguments.described import (
    Described,
    argument_checks,
    checking,
    field_checks,
    refuse,
)
from fabric.graph.arguments.documented import entries, meanings
from fabric.messages.telling.errors import FabricError
from fabric.messages.telling.users_code import users_values

__all__ = ["taking"]

Keywords = ParamSpec("Keywords")
First = TypeVar("First")
Taken = TypeVar("Taken")
Result = TypeVar("Result")

_WIDTH: Final = 96
_ARGUMENTS: Final = re.compile(r"^Args:\n((?:    .*\n?|\n(?=    ))*)", re.MULTILINE)


def taking(
    kind: Callable[Keywords, Taken], without: Mapping[str, str] | None = None
) -> Callable[[Callable[[First, Taken], Result]], Callable[Concatenate[First, Keywords], Result]]:
    """Have a function of something and a description take the description's fields as keywords.

    They are checked as a description's are. ``help`` shows them, with what the description says of
    each; what the function's own docstring says of one in ``Args`` comes before that.

    Args:
        kind: a frozen dataclass of keywords, each with a default.
        without: fields that have no meaning for the function, and why: they are refused.
    """
    refused = dict(without or {})
    described: Any = kind

    def decorate(
        function: Callable[[First, Taken], Result],
    ) -> Callable[Concatenate[First, Keywords], Result]:
        own = inspect.signature(function)
        first = next(iter(own.parameters.values()))
        fields = [
            each
            for each in inspect.signature(described).parameters.values()
            if each.name not in refused
        ]
        signature = inspect.Signature([first, *fields], return_annotation=own.return_annotation)

        @wraps(function)
        def made(*args: Any, **given: Any) -> Result:
            about = args[0] if args else given.pop(first.name)
            with users_values():
                try:
                    taken = described(**given)
                except FabricError as error:
                    said = f"{function.__name__}: {error.message}"
                    raise type(error)(said, file=error.file, line=error.line) from None
                return function(about, taken)

        def checks() -> Iterator[tuple[str, Check]]:
            yield from argument_checks(inspect.Signature([first]), function.__globals__)
            yield from (each for each in field_checks(described) if each[0] not in refused)

        shown: Any = made
        shown.__signature__, shown.without = signature, refused
        shown.__doc__ = _text(function, described, signature, refused)
        fitting = checking(made, signature, checks)

        @wraps(fitting)
        def call(*args: Any, **given: Any) -> Result:
            for name, why in refused.items():
                if name in given:
                    refuse(f"{function.__name__}: {name} is given: {why}: expected none")
            return fitting(*args, **given)

        taker: Callable[Concatenate[First, Keywords], Result] = call
        return taker

    return decorate


def _text(
    function: Callable[..., object],
    kind: type[Described],
    signature: inspect.Signature,
    refused: Mapping[str, str],
) -> str | None:
    """Return the docstring of ``function`` with all that it takes."""
    if function.__doc__ is None:  # python -OO
        return None
    text = inspect.cleandoc(function.__doc__)
    found = _ARGUMENTS.search(text)
    own = dict(entries(textwrap.dedent(found[1]))) if found is not None else {}
    said = meanings(kind) | own
    lines = [
        line
        for name in signature.parameters
        for line in textwrap.wrap(
            f"{name}: {said.get(name, '')}",
            _WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    missing = "".join(f"It takes no ``{name}``: {why}.\n" for name, why in refused.items())
    part = "\n".join([*([missing] if missing else []), "Args:", *lines, ""])
    if found is None:
        return f"{text}\n\n{part}"
    return f"{text[: found.start()]}{part}{text[found.end() :]}"
