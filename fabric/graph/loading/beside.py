"""The modules beside a program: each program has its own, and knows which files it executed."""

from __future__ import annotations

import builtins
import hashlib
import importlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
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

# Any: what Python hands to imports, and whatever stands in a module.
from typing import Any, Final

import numpy as np
from typing_extensions import override

__all__ = ["Beside", "executes_still", "files_of"]

_SHARED: Final = ("fabric", "operators")
"""Packages that programs are written for, wherever a program lies."""

_INSTALLED: Final = str(Path(np.__file__).resolve().parents[1])

# Given names of users' modules only.
_import_statement: Final = builtins.__import__
_import_named: Final = importlib.import_module

_present: Final[dict[str, Beside]] = {}
"""Whose modules are in ``sys.modules`` now, by the name before theirs: ``beside_PROGRAM``."""

_lock: Final = threading.RLock()


class Beside:
    """The modules of one execution of a program: those in its folder, executed for it alone.

    All imports of the program's file and of these modules come here, whenever they are made: an
    operator's while it runs, too. What lies in the folder is executed from its source, and stands
    in ``sys.modules`` by a name of its own; all else is Python's to import.

    Attributes:
        builtins: for it and for those beside it.
        executed: the SHA-256 of each file that was executed, by its path from the folder without a
            suffix; that of the program is "". None where a module was looked for and not found.
    """

    def __init__(self, program: Path | str) -> None:
        """Know the folder; nothing is executed."""
        path = Path(program).resolve()
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
        """Return how a module is found in folders, and note where it is not."""
        last = name.rpartition(".")[2]
        found = None
        for place in path:
            if place not in self._finders:
                self._finders[place] = _finder(place, partial(_Loader, self))
            found = self._finders[place].find_spec(name)
            if found is not None and found.origin is not None:
                if not isinstance(found.loader, _Loader):
                    self.note(found.origin, Path(found.origin).read_bytes())
                return found
            self.executed.setdefault(os.path.relpath(Path(place, last), self._folder), None)
        return found

    def note(self, file: str, content: bytes) -> None:
        """Know what a file had when it was executed, also when that was not the first time."""
        path = Path(file)
        place = path.parent if path.stem == "__init__" else path.with_name(path.name.split(".")[0])
        key, digest = os.path.relpath(place, self._folder), _digest(content)
        before = self.executed.get(key) or digest
        self.executed[key] = digest if before == digest else f"{before} {digest}"

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - Python's names for them
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as Python does, after the program's own folder; see ``__import__``."""
        top = name.partition(".")[0]
        if level == 0 and not self._has(top):
            found = _import_statement(name, globals, locals, fromlist or (), level)
            return self._of_importlib(found) if found is importlib else found
        with _lock:
            self._appear()
            try:
                if level:
                    return _import_statement(name, globals, locals, fromlist or (), level)
                own = f"{self._root}.{name}"
                found = _import_statement(own, globals, locals, fromlist or ("__name__",))
                return found if fromlist else sys.modules[f"{self._root}.{top}"]
            except ModuleNotFoundError as error:
                if not str(error.name).startswith(f"{self._root}."):
                    raise
                text = str(error).replace(f"{self._root}.", "")
                missing = str(error.name).removeprefix(f"{self._root}.")
                raise ModuleNotFoundError(text, name=missing, path=error.path) from None

    def _has(self, top: str) -> bool:
        """Say whether a module lies in the folder; a folder is none where there is a module."""
        if top in _SHARED or self._folder == _INSTALLED:
            return False
        found = self.find(f"{self._root}.{top}", [self._folder])
        if found is None or found.origin is not None:
            return found is not None
        if top in sys.stdlib_module_names:
            return False
        others = (each.find_spec(top, None) for each in sys.meta_path if each is not _Finder)
        return all(each is None or each.origin is None for each in others)

    def _appear(self) -> None:
        """Have these modules in ``sys.modules``, and not those of an earlier execution."""
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
        """Return ``importlib`` with an ``import_module`` that finds what statements find."""
        own = ModuleType(real.__name__)
        vars(own).update(vars(real), import_module=self._import_module)
        return own

    def _import_module(self, name: str, package: str | None = None) -> ModuleType:
        if not name.startswith("."):
            return self._import(name, fromlist=("__name__",))
        with _lock:
            self._appear()
            return _import_named(name, package)


class _Loader(SourceFileLoader):
    """Executes the source that it notes: what an earlier process compiled is not asked."""

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
    """Finds the modules beside programs for Python, by the names that they have there."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG004 - importlib's protocol
    ) -> ModuleSpec | None:
        own = _present.get(name.partition(".")[0])
        return None if own is None or path is None else own.find(name, path)


def files_of(module: ModuleType) -> dict[str, str | None]:
    """Return what a program has executed so far; see ``Beside.executed``."""
    assert module.__spec__ is not None
    return dict(module.__spec__.loader_state.executed)


def executes_still(program: Path, executed: Mapping[str, str | None]) -> bool:
    """Say whether the files that a program has executed are what they were.

    Args:
        program: the path of its file now; where that is does not matter.
        executed: see ``Beside.executed``.

    Raises:
        OSError: a file cannot be read.
    """
    folder = program.resolve().parent
    for key, digest in executed.items():
        if key:
            found = _finder(str((folder / key).parent), SourceFileLoader).find_spec(Path(key).name)
            file = None if found is None else found.origin
        else:
            file = str(program)
        if digest != (None if file is None else _digest(Path(file).read_bytes())):
            return False
    return True


def _finder(place: str, loader: Any) -> FileFinder:
    """Return what finds modules in a folder, as Python's own does."""
    return FileFinder(
        place,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (loader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
