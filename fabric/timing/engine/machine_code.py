"""Loops over integers, which numba compiles once. Later runs link the kept machine code.

Importing numba and loading a function from its cache takes 0.6 seconds of every run. Linking two
kilobytes with LLVM takes a twelfth of that.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

# Any: llvmlite has no types.
from typing import Any, Final, TypeAlias, get_args, get_type_hints

import numpy as np

from fabric.timing.engine.tables import cells_of, parts, row_of

Loop: TypeAlias = Callable[..., tuple[int, ...]]
"""A loop over fixed tables, from integers to integers."""

_DIGEST_BYTES: Final = 32

_COMPILER: Final = ("compiling", "tables")

_engines: Final[list[Any]] = []
"""Engines stay in memory, because each owns the code that it has linked."""

_kept_compiled: Final[list[bool]] = []


def keeps_code() -> bool | None:
    """Whether this process kept its compiled code for later ones; None if it compiled nothing."""
    return all(_kept_compiled) if _kept_compiled else None


class MachineCode:
    """Decorates a function of worlds and integers that runs as machine code.

    It returns a tuple of ``int``. The code depends on the module of the function, on the modules
    in ``uses`` and on those that define its worlds.
    """

    def __init__(self, function: Loop, uses: Sequence[ModuleType] = ()) -> None:
        self.function: Final = function
        self._uses: Final = uses
        kinds = get_type_hints(function)
        self._results: Final = len(get_args(kinds.pop("return")))
        self._kinds: Final = kinds

    def over(self, *tables: object) -> Loop:
        """Return the loop over these worlds or arrays, to be called with the integers in order."""
        assert len(tables) == sum(kind is not int for kind in self._kinds.values())
        fixed = []
        for cells in cells_of(tables):
            assert cells.dtype == np.int64, f"expected int64, not {cells.dtype}"
            assert cells.flags.c_contiguous, "expected contiguous integers"
            fixed += [cells.ctypes.data, cells.size]
        frame = np.array([*fixed, *[0] * self._results], np.int64)
        native, results, at = self._native, frame[len(fixed) :], frame.ctypes.data

        def call(*integers: int, _alive: object = (tables, frame)) -> tuple[int, ...]:
            native(at, *integers)
            return tuple(results.tolist())

        return call

    @cached_property
    def _native(self) -> Callable[..., None]:
        """The linked C function, which takes a frame (see ``compiling``) and the integers."""
        integers = [ctypes.c_int64 for kind in self._kinds.values() if kind is int]
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p, *integers)(self.link())

    def link(self) -> int:
        """Return the address of the machine code, compiled if no process has kept it."""
        # Imported here, because loading LLVM takes 50 milliseconds.
        from llvmlite import binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=3,
            codemodel="jitdefault",
            jit=True,
        )
        source = Path(self.function.__code__.co_filename)
        names = dict.fromkeys(module.__name__ for module in self._uses)
        names |= dict.fromkeys(name for kind in self._kinds.values() for name in _modules(kind))
        used = [Path(sys.modules[name].__file__ or "") for name in names]
        name = f"{source.stem}.{self.function.__name__}-{_key(source, *used)}.o"
        code = next(_kept(name, source), None)
        if code is None:
            # The compiler is not imported if the machine code was kept.
            from fabric.timing.engine.compiling import compiled

            code = compiled(self.function, self._kinds, target)
            _kept_compiled.append(_keep(code, name, source))
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        address: int = engine.get_function_address(self.function.__name__)
        return address


def _modules(kind: Any) -> Iterator[str]:
    """Yield the modules that define a world, its rows and the worlds in it."""
    defined = kind if parts(kind) else row_of(kind)
    if defined is not None:
        yield defined.__module__
    for field in parts(kind).values():
        yield from _modules(field)


def _key(*sources: Path) -> str:
    import llvmlite
    from llvmlite import binding as llvm

    parts = (
        *(source.read_text(encoding="utf-8") for source in sources),
        *(Path(__file__).with_name(f"{name}.py").read_text("utf-8") for name in _COMPILER),
        llvmlite.__version__,
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _folders(source: Path) -> Iterator[Path]:
    """Yield the folders for machine code: ``__pycache__`` of the source, and the user's cache."""
    yield Path(cache_from_source(str(source))).parent
    with contextlib.suppress(RuntimeError):  # HOME is not set, and the user has no entry
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "step-fabric"


def _kept(name: str, source: Path) -> Iterator[bytes]:
    """Yield the machine code that another process has kept; incomplete files are skipped."""
    for folder in _folders(source):
        with contextlib.suppress(OSError):
            kept = (folder / name).read_bytes()
            digest, code = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
            if hashlib.sha256(code).digest() == digest:
                yield code


def _keep(code: bytes, name: str, source: Path) -> bool:
    """Keep machine code for other processes; return whether a folder is writable."""
    for folder in _folders(source):
        beside = folder / f"{name}.{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(hashlib.sha256(code).digest() + code)
            beside.replace(folder / name)
            return True
    return False
