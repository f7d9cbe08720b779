"""The parameters of ``build``: text from the command line, converted by the annotations."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fabric.telling.errors import ProgramError
from fabric.telling.place import Place
from fabric.telling.users_code import users_code
from fabric.telling.wording import one_of

__all__ = ["parameter_values"]

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameter_values(
    build: Callable[..., object], given: Sequence[str], *, file: str
) -> dict[str, object]:
    """Return a value for every parameter of ``build``: the given one, else its default.

    Args:
        build: the function of the user's program.
        given: ``NAME=VALUE``, as on the command line.
        file: of the program, for messages.

    Raises:
        ProgramError: ``build`` takes no such parameter, it is given twice, the text is not of its
            type, or a parameter without a default is not given.
    """
    line = build.__code__.co_firstlineno
    takes = {
        name: parameter
        for name, parameter in inspect.signature(build).parameters.items()
        if parameter.kind in _BY_NAME
    }
    for name, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ProgramError(
                f"parameter {name} of build() has no name to callers: expected no / behind it",
                file=file,
                line=line,
            )
    annotations = _annotations(build, file, line)
    values = {
        name: parameter.default
        for name, parameter in takes.items()
        if parameter.default is not inspect.Parameter.empty
    }
    before: dict[str, str] = {}
    for item in given:
        name, separator, text = item.partition("=")
        if not separator:
            raise ProgramError(f"-p {item}: expected NAME=VALUE")
        if name not in takes:
            expected = one_of(list(takes), name) if takes else "none, it takes no parameters"
            raise ProgramError(
                f"build() takes no parameter {name} (found -p {item}): expected {expected}",
                file=file,
                line=line,
            )
        if name in before:
            raise ProgramError(
                f"parameter {name} of build() is given twice, as -p {before[name]} and -p {item}: "
                "expected one value",
                file=file,
                line=line,
            )
        before[name] = item
        default = values.get(name)
        annotation = annotations.get(name, str if default is None else type(default))
        try:
            values[name] = _convert(text, annotation)
        except (msgspec.ValidationError, TypeError) as error:
            raise ProgramError(
                f"parameter {name} of build() is {text!r}: expected {_spelled(annotation, text)}",
                file=file,
                line=line,
            ) from error
    missing = [name for name in takes if name not in values]
    if missing:
        raise ProgramError(
            f"build() needs a value for {', '.join(missing)}: expected -p {missing[0]}=VALUE",
            file=file,
            line=line,
        )
    return values


def _annotations(build: Callable[..., object], file: str, line: int) -> dict[str, object]:
    with users_code("evaluating the annotations of build()", Place(file, line)):
        return typing.get_type_hints(build, include_extras=True)


def _convert(text: str, annotation: object) -> object:
    if text.lower() in ("none", "null") and types.NoneType in typing.get_args(annotation):
        return None
    return msgspec.convert(text, annotation, strict=False, dec_hook=_custom)


def _custom(wanted: type, text: str) -> object:
    if issubclass(wanted, Path) and text:
        return wanted(text)
    raise TypeError(f"text cannot be turned into a {wanted.__name__}")


def _spelled(annotation: object, found: str) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return one_of([str(value) for value in typing.get_args(annotation)], found)
    if not found and Path in (annotation, *typing.get_args(annotation)):
        return "a path"
    if typing.get_origin(annotation) is None and isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
