"""Modules whose data decide what they do next: PyTorch cannot trace them, and says so at length."""

from __future__ import annotations

import inspect
import io
import linecache
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Final

import torch
from torch.fx.experimental import symbolic_shapes

__all__ = ["data_decide", "without_its_dump"]

_LOGGER: Final = logging.getLogger(symbolic_shapes.__name__)


def data_decide(module: torch.nn.Module, error: Exception) -> str:
    """Return what is wrong with ``module``, and in which of its lines, after such an ``error``."""
    name = type(module).__name__
    files = {_file_of(type(each)) for each in module.modules()}
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in files
    ]
    where = ""
    if frames:
        file, line = frames[-1]
        where = f" at {Path(file).name}:{line}, `{linecache.getline(file, line).strip()}`"
    return (
        f"torch.export cannot trace {name}: its data decide what it does next{where}: expected "
        "calls that are the same for all data; torch.where chooses between two results"
    )


@contextmanager
def without_its_dump() -> Iterator[None]:
    """Leave out the graph so far that PyTorch prints then; what a module prints is printed."""
    printed, dump = io.StringIO(), ""
    _LOGGER.addFilter(_nothing)
    try:
        with redirect_stderr(printed):
            yield
    except symbolic_shapes.GuardOnDataDependentSymNode as error:
        dump = f"{getattr(error, 'partial_fx_graph', '')}\n"
        raise
    finally:
        _LOGGER.removeFilter(_nothing)
        sys.stderr.write(printed.getvalue().replace(dump, ""))


def _nothing(record: logging.LogRecord) -> bool:  # noqa: ARG001 - a filter of logging
    return False


def _file_of(kind: type) -> str | None:
    try:
        return inspect.getsourcefile(kind)
    except TypeError:
        return None
