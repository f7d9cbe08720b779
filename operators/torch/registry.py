"""Which calls can be imported, and by whom: one line for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing

__all__ = ["Importer", "Result", "importer_of", "imports", "supported"]

Result: TypeAlias = View | tuple[View | None, ...]
"""What a call returns: a tensor, or several, None for one that nobody can read."""

Importer: TypeAlias = Callable[[Importing, Call], Result]

_IMPORTERS: Final[dict[str, Importer]] = {}


def imports(*targets: str) -> Callable[[Importer], Importer]:
    """Register a function that imports calls of ``targets``, such as ``aten.relu.default``.

    It plans the kernels of one call and returns what that returns. A later registration of a
    target replaces an earlier one.
    """

    def register(importer: Importer) -> Importer:
        _IMPORTERS.update(dict.fromkeys(targets, importer))
        return importer

    return register


def importer_of(target: str) -> Importer | None:
    """Return who imports calls of ``target``; None where nobody does."""
    return _IMPORTERS.get(target)


def supported() -> tuple[str, ...]:
    """Return all targets that can be imported, in alphabetical order."""
    return tuple(sorted(_IMPORTERS))
