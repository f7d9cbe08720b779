"""Program files: executed, asked for ``build``, and built with the parameters given as text."""

from __future__ import annotations

import hashlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn

import msgspec

from fabric.graph.arguments.described import called_wrongly
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.beside import Beside
from fabric.graph.wiring.program import Program, hardware_scope
from fabric.messages.telling.errors import FabricError, ProgramError, said
from fabric.messages.telling.place import Place, raising_place
from fabric.messages.telling.read_files import open_given
from fabric.messages.telling.users_code import pass_signals, users_code
from fabric.messages.telling.wording import found_text, one_of

__all__ = ["Loaded", "called", "executed", "load_on", "load_program", "wired"]


class Loaded(NamedTuple):
    """A program, wired.

    Attributes:
        program: what ``build`` returned.
        parameters: every parameter of ``build`` with the value it had.
    """

    program: Program
    parameters: dict[str, object]


def load_program(path: Path | str, parameters: Sequence[str], hardware: Hardware) -> Loaded:
    """Execute the program file at ``path`` and wire its program; see ``executed`` and ``wired``."""
    return wired(executed(path), parameters, hardware)


def load_on(
    hardware_file: str | None,
    program: str,
    parameters: Sequence[str],
    known: dict[str, object],
    *,
    wires: bool = False,
) -> Loaded:
    """Load a program on the hardware of a file, by default the paper's.

    The program's file is executed first: it may register the memory that the hardware file chooses.

    Args:
        hardware_file: None for the default.
        program: the path of its file.
        parameters: ``NAME=VALUE``, for ``build``; each name once.
        known: is told of the hardware and the parameters as soon as they are known.
        wires: channels take one element a cycle and give one, whatever the file says.

    Raises:
        FabricError: what is wrong with either file.
    """
    if hardware_file is None:
        known.update(hardware=Hardware().as_dict())
    module = executed(program)
    hardware = Hardware()
    if hardware_file is not None:
        # It knows all models of memory and reads TOML: milliseconds that most runs do without.
        from fabric.graph.hardware.file import load_hardware

        hardware = load_hardware(hardware_file)
    if wires:
        hardware = hardware.of_wires()
    known.update(hardware=hardware.as_dict())
    loaded = wired(module, parameters, hardware)
    known.update(parameters=loaded.parameters, hardware=loaded.program.hardware.as_dict())
    return loaded


def wired(module: ModuleType, parameters: Sequence[str], hardware: Hardware) -> Loaded:
    """Wire the program of a file that was executed.

    Args:
        module: what the file defines.
        parameters: ``NAME=VALUE``, for ``build``; each name once.
        hardware: what the program leaves open comes from here.

    Raises:
        ProgramError: there is no ``build``; or it does not take the parameters, fails, or returns
            something else.
        FabricError: what the fabric found wrong while the program was wired.
    """
    file = str(module.__file__)
    build = getattr(module, "build", None)
    if build is None:
        raise ProgramError("defines no build(), so there is no program to run", file=file)
    if not inspect.isfunction(build):
        raise ProgramError(
            f"build is of type {type(build).__name__}: expected a function that returns a Program",
            file=file,
        )
    line = build.__code__.co_firstlineno
    values = parameter_values(build, parameters, file=file)
    try:
        with hardware_scope(hardware):
            program = build(**values)
    except FabricError as error:
        if error.file is None:
            error.file, error.line = raising_place(error) or (file, line)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        pass_signals(error)
        _blame(error, "build()", file, line)
    if not isinstance(program, Program):
        hint = " (does it end in return program?)" if program is None else ""
        raise ProgramError(
            f"build() returned {found_text(program)}: expected a Program{hint}",
            file=file,
            line=line,
        )
    return Loaded(program, values)


def called(module: ModuleType, name: str) -> object:
    """Return what a function without parameters of a file returns.

    Args:
        module: what the file defines.
        name: of the function.

    Raises:
        FabricError: it is no function, needs arguments, or fails.
    """
    file = str(module.__file__)
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        raise ProgramError(f"{name} is {found_text(function)}: expected a function", file=file)
    line = function.__code__.co_firstlineno
    try:
        return function()
    except FabricError as error:
        if error.file is None:
            error.file, error.line = raising_place(error) or (file, line)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        pass_signals(error)
        _blame(error, f"{name}()", file, line)


def executed(path: Path | str) -> ModuleType:
    """Execute the program file at ``path``; what it imports from its folder is its own: ``Beside``.

    Raises:
        ProgramError: the file cannot be executed.
    """
    file = str(path)
    try:
        with open_given(Path(file)) as opened:
            source = opened.read()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ProgramError(
            f"cannot be read ({reason}): expected a Python program that defines build()", file=file
        ) from error
    beside = Beside(file)
    module = ModuleType(f"program_{Path(file).stem}")
    module.__file__ = file
    module.__spec__ = ModuleSpec(module.__name__, None, origin=file, loader_state=beside)
    vars(module)["__builtins__"] = beside.builtins
    sys.modules[module.__name__] = module
    beside.executed[""] = hashlib.sha256(source).hexdigest()
    try:
        exec(compile(source, file, "exec"), vars(module))
    except FabricError:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        pass_signals(error)
        _blame(error, "the file", file, None)
    return module


def _blame(error: BaseException, who: str, file: str, line: int | None) -> NoReturn:
    """Say what the user's code raised, at the deepest line of it."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        raise ProgramError(
            f"not valid Python: {error.msg}", file=error.filename, line=error.lineno
        ) from error
    mistake = called_wrongly(error)
    if mistake is not None:
        raise mistake from error
    file, line = raising_place(error) or (file, line)
    raise ProgramError(f"{who} raised {said(error)}", file=file, line=line) from error


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
