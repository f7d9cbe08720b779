"""Executes program files with the modules beside them, and calls their ``build``."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import inspect
import os
import sys
import threading
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

# Any: arguments of imports, and values in modules.
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import frozen_error, refuse
from fabric.graph.arguments.numbers import number_of
from fabric.graph.hardware.description import Hardware
from fabric.graph.wiring.program import Program, hardware_scope
from fabric.messages.errors import ConfigurationError, ProgramError
from fabric.messages.files import open_given
from fabric.messages.place import defining_place
from fabric.messages.text import found_text, one_of
from fabric.messages.users_code import raised, users_code

_SHARED: Final = ("fabric", "operators")
"""Packages that are never imported from a program's folder."""

_INSTALLED: Final = str(Path(np.__file__).resolve().parents[1])

# Python's import functions, which the functions of ``Beside`` call.
_import_statement: Final = builtins.__import__
_import_named: Final = importlib.import_module

_present: Final[dict[str, Beside]] = {}
"""The owner of the modules now in ``sys.modules``, by the name of their package."""

_lock: Final = threading.RLock()


class Beside:
    """The modules in the folder of a program, executed again for each execution of the program.

    It handles all imports of the program and of these modules, also during a run. In
    ``sys.modules`` the modules belong to a package ``beside_PROGRAM``.

    Attributes:
        executed: SHA-256 of each executed file by its path without a suffix ("" for the program);
            None if a module was not found.
    """

    def __init__(self, program: Path | str) -> None:
        path = Path(program).resolve()
        self._program: Final = str(path)
        self.executed: Final[dict[str, str | None]] = {}
        self.builtins: Final = {**vars(builtins), "__import__": self._import}
        self._root: Final = f"beside_{path.stem.replace('.', '_')}"
        self._folder: Final = str(path.parent)
        self._finders: Final[dict[str, FileFinder]] = {}
        root = ModuleType(self._root)
        root.__path__ = [self._folder]
        self._modules = {self._root: root}
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)

    def find(self, name: str, path: Sequence[str]) -> ModuleSpec | None:
        """Find a module in folders. If it is missing, record this."""
        last = name.rpartition(".")[2]
        spec = None
        for place in path:
            if place not in self._finders:
                self._finders[place] = _finder(place, partial(_Loader, self))
            spec = self._finders[place].find_spec(name)
            if spec is not None and spec.origin is not None:
                if not isinstance(spec.loader, _Loader):
                    self.note(spec.origin, Path(spec.origin).read_bytes())
                return spec
            self.executed.setdefault(os.path.relpath(Path(place, last), self._folder), None)
        return spec

    def note(self, file: str, content: bytes) -> None:
        """Record the content of an executed file; different contents are recorded together."""
        path = Path(file)
        place = path.parent if path.stem == "__init__" else path.with_name(path.name.split(".")[0])
        key, digest = os.path.relpath(place, self._folder), _digest(content)
        before = self.executed.get(key) or digest
        self.executed[key] = digest if before == digest else f"{before} {digest}"

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - as in Python
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import from the program's folder if it has the module, otherwise as ``__import__``."""
        top = name.partition(".")[0]
        if level == 0 and not self._has(top):
            module = _import_statement(name, globals, locals, fromlist or (), level)
            return self._of_importlib(module) if module is importlib else module
        with _lock:
            self._install()
            try:
                if level:
                    return _import_statement(name, globals, locals, fromlist or (), level)
                own = f"{self._root}.{name}"
                module = _import_statement(own, globals, locals, fromlist or ("__name__",))
                return module if fromlist else sys.modules[f"{self._root}.{top}"]
            except ModuleNotFoundError as error:
                if not str(error.name).startswith(f"{self._root}."):
                    raise
                text = str(error).replace(f"{self._root}.", "")
                missing = str(error.name).removeprefix(f"{self._root}.")
                raise ModuleNotFoundError(text, name=missing, path=error.path) from None

    def _has(self, top: str) -> bool:
        if top in _SHARED or self._folder == _INSTALLED:
            return False
        spec = self.find(f"{self._root}.{top}", [self._folder])
        if spec is None or spec.origin not in (None, self._program):
            return spec is not None
        if top in sys.stdlib_module_names:
            return False
        specs = (finder.find_spec(top, None) for finder in sys.meta_path if finder is not _Finder)
        return {spec.origin for spec in specs if spec is not None} <= {None, self._program}

    def _install(self) -> None:
        """Replace the modules of another program in ``sys.modules`` by these modules."""
        before = _present.get(self._root)
        if before is self:
            return
        if before is not None:
            before._modules = {
                name: module
                for name, module in sys.modules.items()
                if name.partition(".")[0] == self._root
            }
            for name in before._modules:
                del sys.modules[name]
        sys.modules.update(self._modules)
        _present[self._root] = self

    def _of_importlib(self, real: ModuleType) -> ModuleType:
        own = ModuleType(real.__name__)
        vars(own).update(vars(real), import_module=self._import_module)
        return own

    def _import_module(self, name: str, package: str | None = None) -> ModuleType:
        if not name.startswith("."):
            return self._import(name, fromlist=("__name__",))
        with _lock:
            self._install()
            return _import_named(name, package)


class _Loader(SourceFileLoader):
    """Executes and records source files; it does not read stored bytecode."""

    def __init__(self, beside: Beside, name: str, path: str) -> None:
        super().__init__(name, path)
        self._beside: Final = beside

    @override
    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        self._beside.note(self.path, source)
        return self.source_to_code(source, self.path)

    @override
    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._beside.builtins
        super().exec_module(module)


class _Finder:
    """Finds modules of the packages ``beside_PROGRAM`` for Python."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG004 - importlib's protocol
    ) -> ModuleSpec | None:
        own = _present.get(name.partition(".")[0])
        return None if own is None or path is None else own.find(name, path)


def files_of(module: ModuleType) -> dict[str, str | None]:
    """Return the files that a program has executed so far, as ``Beside.executed``."""
    assert module.__spec__ is not None
    return dict(module.__spec__.loader_state.executed)


def executes_same_files(program: Path, executed: Mapping[str, str | None]) -> bool:
    """Whether the program would execute the same files with the same contents."""
    folder = program.resolve().parent
    for key, digest in executed.items():
        if key:
            spec = _finder(str((folder / key).parent), SourceFileLoader).find_spec(Path(key).name)
            file = None if spec is None else spec.origin
        else:
            file = str(program)
        if digest != (None if file is None else _digest(Path(file).read_bytes())):
            return False
    return True


def _finder(place: str, loader: Any) -> FileFinder:
    return FileFinder(
        place,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (loader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Loaded(NamedTuple):
    """A wired program, and the values of all parameters of ``build``."""

    program: Program
    parameters: dict[str, object]


def load_program(path: Path | str, parameters: Sequence[str], hardware: Hardware) -> Loaded:
    return wired(executed(path), parameters, hardware)


def load_on(
    hardware_file: str | None,
    program: str,
    parameters: Sequence[str],
    known: dict[str, object],
    *,
    wires: bool = False,
) -> Loaded:
    """Load a program on the hardware of a file, by default the hardware of the paper.

    The program is executed first, since it may register the memory that the hardware file selects.
    Each parameter is ``NAME=VALUE``. The hardware and the parameters are added to ``known`` even if
    a later step fails. With ``wires``, channels take and give one element a cycle, whatever the
    file states.
    """
    if hardware_file is None:
        known.update(hardware=Hardware().as_dict())
    module = executed(program)
    hardware = Hardware()
    if hardware_file is not None:
        # The imports of memory models and of TOML take milliseconds.
        from fabric.graph.hardware.file import load_hardware

        hardware = load_hardware(hardware_file)
    if wires:
        hardware = hardware.of_wires()
    known.update(hardware=hardware.as_dict())
    loaded = wired(module, parameters, hardware)
    known.update(parameters=loaded.parameters, hardware=loaded.program.hardware.as_dict())
    return loaded


def wired(module: ModuleType, parameters: Sequence[str], hardware: Hardware) -> Loaded:
    """Call ``build`` of an executed file with parameters ``NAME=VALUE``."""
    build = build_of(module)
    values = parameter_values(build, parameters)
    code = build.__code__
    with hardware_scope(hardware), _executing("build()", code.co_filename, code.co_firstlineno):
        program = build(**values)
    if not isinstance(program, Program):
        hint = " (does it end in return program?)" if program is None else ""
        refuse(
            f"build() returned {found_text(program)}: expected a Program{hint}",
            place=defining_place(build),
        )
    return Loaded(program, values)


def build_of(module: ModuleType) -> types.FunctionType:
    file = str(module.__file__)
    build: object = getattr(module, "build", None)
    if build is None:
        raise ProgramError("defines no build(), so there is no program to run", file=file)
    if not isinstance(build, types.FunctionType):
        raise ProgramError(
            f"build is of type {type(build).__name__}: expected a function that returns a Program",
            file=file,
        )
    return build


def call_function(module: ModuleType, name: str) -> object:
    """Call the function ``name`` of a file without arguments."""
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        raise ProgramError(
            f"{name} is {found_text(function)}: expected a function", file=module.__file__
        )
    code = function.__code__
    with _executing(f"{name}()", code.co_filename, code.co_firstlineno):
        return function()


def executed(path: Path | str) -> ModuleType:
    """Execute the program file at ``path``; ``Beside`` handles its imports."""
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
    beside.executed[""] = _digest(source)
    with _executing("the file", file):
        exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    return module


@contextlib.contextmanager
def _executing(who: str, file: str, line: int | None = None) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if isinstance(error, SyntaxError) and error.filename is not None:
            raise ProgramError(
                f"not valid Python: {error.msg}", file=error.filename, line=error.lineno
            ) from error
        failure = frozen_error(error) or raised(who, error)
        if failure.file is None:
            failure.file, failure.line = file, line
        if failure is error:
            raise
        raise failure from error


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameter_value(build: types.FunctionType, name: str, text: str) -> object:
    """Convert ``text`` to the type of a parameter of ``build``, within its ``Bounds``."""
    takes = _parameters_of(build)
    if name not in takes:
        expected = one_of(list(takes), name) if takes else "no parameters"
        refuse(
            f"build() takes no parameter {name} (found -p {name}={text}): expected {expected}",
            place=defining_place(build),
        )
    default = takes[name].default
    untyped = default is None or default is inspect.Parameter.empty
    with users_code("evaluating the annotations of build()", defining_place(build)):
        annotations = typing.get_type_hints(build, include_extras=True)
    annotation = annotations.get(name, str if untyped else type(default))
    try:
        value = _convert(text, annotation)
    except (msgspec.ValidationError, TypeError):
        refuse(
            f"parameter {name} of build() is {text!r}: expected {_spelled(annotation, text)}",
            place=defining_place(build),
        )
    for bounds in getattr(annotation, "__metadata__", ()):
        if isinstance(bounds, Bounds) and value is not None and not bounds.hold(value):
            code = build.__code__
            raise ConfigurationError(
                f"{name} is {value}: expected {bounds}",
                file=code.co_filename,
                line=code.co_firstlineno,
            )
    return value


def parameter_values(build: types.FunctionType, given: Sequence[str]) -> dict[str, object]:
    """Return the values of all parameters of ``build``, ``given`` as ``NAME=VALUE`` or defaults."""
    place = defining_place(build)
    takes = _parameters_of(build)
    for name, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            refuse(
                f"parameter {name} of build() is positional-only: expected no / after it",
                place=place,
            )
    values = {
        name: parameter.default
        for name, parameter in takes.items()
        if parameter.default is not inspect.Parameter.empty
    }
    items: dict[str, str] = {}
    for item in given:
        name, separator, text = item.partition("=")
        if not separator:
            raise ProgramError(f"-p {item}: expected NAME=VALUE")
        if name in items:
            refuse(
                f"parameter {name} of build() is given twice, as -p {items[name]} and -p {item}: "
                "expected one value",
                place=place,
            )
        items[name] = item
        values[name] = parameter_value(build, name, text)
    missing = [name for name in takes if name not in values]
    if missing:
        refuse(
            f"build() needs a value for {', '.join(missing)}: expected -p {missing[0]}=VALUE",
            place=place,
        )
    return values


def _parameters_of(build: types.FunctionType) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(build).parameters.items()
    return {name: parameter for name, parameter in parameters if parameter.kind in _BY_NAME}


def _convert(text: str, annotation: object) -> object:
    if text.lower() in ("none", "null") and types.NoneType in typing.get_args(annotation):
        return None
    try:
        return msgspec.convert(text, annotation, strict=False, dec_hook=_custom)
    except msgspec.ValidationError:
        number = number_of(text)
        if number is None:
            raise
        return msgspec.convert(number, annotation, strict=False, dec_hook=_custom)


def _custom(wanted: type, text: str) -> object:
    if issubclass(wanted, Path) and text:
        return wanted(text)
    raise TypeError(f"text cannot be turned into a {wanted.__name__}")


def _spelled(annotation: object, text: str) -> str:
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is typing.Literal:
        return one_of([str(value) for value in typing.get_args(annotation)], text)
    if not text and Path in (annotation, *typing.get_args(annotation)):
        return "a path"
    if isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
