"""Lines of the user's program, such as the line that wires an operator or raises an error."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Final, NamedTuple

from fabric.messages.text import visible

_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OWN: Final = tuple(os.path.join(_ROOT, name) + os.sep for name in ("fabric", "operators"))
# sysconfig may be half imported while a signal handler runs.
_LIBRARIES: Final = (
    os.path.dirname(os.__file__) + os.sep,
    os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin") + os.sep,
)
_PACKAGES: Final = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_BETWEEN: Final = {
    ("<string>", "__init__"),
    *((contextlib.__file__, name) for name in ("inner", "__enter__", "__exit__")),
}
"""Functions of Python that call the fabric's: of a dataclass, or of a context manager."""


class Place(NamedTuple):
    """A line of the user's program. A file of the command line is spelled as there."""

    file: str
    line: int

    def __str__(self) -> str:
        """``file:line``, which editors and terminals link; ``In[3]:5`` for a notebook's cell."""
        return f"{_cell(self.file) or self.file}:{self.line}"

    @property
    def brief(self) -> str:
        """The place without the folders of the file."""
        return f"{_cell(self.file) or os.path.basename(self.file)}:{self.line}"


def _cell(file: str) -> str | None:
    """Return the name of a notebook cell for ``file``, None for other files."""
    # In a notebook, IPython is imported already.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    name = None if shell is None else shell.compile.format_code_name(file)
    return None if name is None else str(name[1])


def calling_place() -> Place:
    """Return the innermost line outside of the fabric, the operators and users' ``__call__``."""
    frame = sys._getframe(2)  # the caller is a function of the fabric
    code = frame.f_code
    while (
        code.co_filename.startswith(_OWN)
        or code.co_name == "__call__"
        or (code.co_filename, code.co_name) in _BETWEEN
    ) and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    return _place(frame.f_code.co_filename, frame.f_lineno)


def blamed_place() -> Place | None:
    """Return the innermost line in a file of the user, outside of libraries; None if none."""
    for frame, line in traceback.walk_stack(sys._getframe(2)):
        code = frame.f_code
        file = code.co_filename
        between = (file, code.co_name) in _BETWEEN or code.co_name == "__call__"
        if not (between or file.startswith((*_OWN, "<frozen ")) or is_installed(file)):
            return _place(file, line)
    return None


@lru_cache(maxsize=1 << 10)
def _place(file: str, line: int) -> Place:
    # Cached, since a line in a loop wires thousands of operators.
    return Place(visible(file), line)


def raising_place(error: BaseException) -> Place | None:
    """Return the deepest line of the user's code in the traceback of ``error``, if any."""
    return deepest_place(traceback.walk_tb(error.__traceback__))


def deepest_place(frames: Iterable[tuple[FrameType, int]]) -> Place | None:
    """Return the last line of the user's code among ``frames``, outermost first, if any."""
    place = None
    for frame, line in frames:
        file = frame.f_code.co_filename
        # Compiled libraries name source files that do not exist here.
        if os.path.isfile(file) and not file.startswith(_OWN) and not is_installed(file):
            place = _place(file, line)
    return place


def users_fault(error: BaseException) -> Place | None:
    """Return the user's line that raised ``error``, itself or in a library that it called."""
    ours = False
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith(_OWN):
            ours = True
        elif os.path.isfile(file) and not is_installed(file):
            ours = False
    return None if ours else raising_place(error)


def is_installed(file: str) -> bool:
    return file.startswith(_LIBRARIES) or any(part in file for part in _PACKAGES)


def code_place(code: CodeType, instruction: int) -> Place | None:
    """Return the line of ``instruction``, an offset in bytes; None if ``code`` is not a user's."""
    if written_by_us(code):
        return None
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return _place(code.co_filename, line)
    return _place(code.co_filename, code.co_firstlineno)


def defining_place(function: object) -> Place | None:
    """Return the first line of ``function`` if it is a user's and written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or written_by_us(code):
        return None
    return _place(code.co_filename, code.co_firstlineno)


def written_by_us(code: CodeType) -> bool:
    return code.co_filename.startswith(_OWN)


def is_ours(kind: type) -> bool:
    """Whether a class belongs to the fabric or its operators; users' subclasses do not."""
    return kind.__module__.startswith(("fabric.", "operators."))
