"""The importers of calls, by name, and the reasons why other calls are not supported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from fabric.extend import users_code
from operators.kernels.tensors import Opaque, View
from operators.torch.call import Call, UnsupportedError
from operators.torch.importing import Importing

Result: TypeAlias = View | tuple[View | None, ...]
"""The result of a call: a tensor or several, None for a tensor that has no reader."""

Given = TypeVar("Given")

Importer: TypeAlias = Callable[[Importing, Call], Result]

Own = TypeVar("Own", bound=Importer)

Maker: TypeAlias = Callable[[Importing, View], View]
"""Takes a view of a tensor in an opaque form; plans a kernel that brings it into a layout."""

_MAKERS: Final[dict[type, Maker]] = {}
_IMPORTERS: Final[dict[tuple[str, type | None], Importer]] = {}


def imports(*targets: str, of: type | None = None) -> Callable[[Own], Own]:
    """Register a function that imports calls of ``targets``, such as ``aten.relu.default``.

    It plans the kernels of one call and returns the views of the call's results. A later
    registration of a target replaces an earlier one.

    Args:
        targets: the calls.
        of: only calls on a tensor in an opaque form of this type, with precedence over importers
            without ``of``.
    """

    def register(importer: Own) -> Own:
        _IMPORTERS.update(dict.fromkeys(((target, of) for target in targets), importer))
        return importer

    return register


def importer_of(target: str, forms: Iterable[type] = ()) -> Importer | None:
    """Return the importer of calls of ``target`` on ``forms``; None if it has no importer."""
    return next((_IMPORTERS[key] for key in _keys(target, forms)), _IMPORTERS.get((target, None)))


def takes_opaque(target: str, forms: Iterable[type]) -> bool:
    """Whether an importer takes calls of ``target`` on tensors in a form among ``forms``."""
    return any(True for _ in _keys(target, forms))


def _keys(target: str, forms: Iterable[type]) -> Iterator[tuple[str, type | None]]:
    return (key for each in forms if (key := (target, each)) in _IMPORTERS)


def makes_whole(form: type) -> Callable[[Maker], Maker]:
    """Register a function that brings tensors in an opaque form into a layout.

    It is called once per tensor, when a call needs a layout; all such calls share the view.
    """

    def register(maker: Maker) -> Maker:
        _MAKERS[form] = maker
        return maker

    return register


def whole(importing: Importing, view: View) -> View:
    """Return a view in a layout, for a tensor that may be in an opaque form."""
    source = view.source
    if not isinstance(source, Opaque):
        return view
    if source not in importing.wholes:
        maker = _MAKERS.get(type(source.form))
        if maker is None:
            importing.unsupported(f"it is given {source.form}: expected a tensor whole")
        form = type(source.form).__name__
        importing.wholes[source] = run_registered(
            f"makes_whole({form})", maker, importing, View.of(source)
        )
    return importing.wholes[source].again(view)


def run_registered(
    who: str, registered: Callable[..., Given], importing: Importing, of: object
) -> Given:
    """Return the result of an importer or a maker, which may be a user's."""
    with users_code(who):
        try:
            return registered(importing, of)
        except UnsupportedError as error:
            refusal = error
    raise refusal


def supported() -> tuple[str, ...]:
    """Return all targets that have an importer, in alphabetical order."""
    return tuple(sorted({target for target, _ in _IMPORTERS}))


@dataclass(frozen=True)
class Unsupported:
    """A call that cannot be imported.

    Attributes:
        written: the function in the user's line, such as ``index_add``; empty if PyTorch does not
            record it.
        call: its target in the trace, such as ``aten.index_put.default``.
        module: path of the module that makes it.
        file, line: in the user's model.
        needed: what would make the import possible.
    """

    written: str
    call: str
    module: str
    file: str | None
    line: int | None
    needed: str

    def __str__(self) -> str:
        """Return the call, its module, and what the import needs."""
        where = f" in module {self.module}" if self.module else ""
        called = f"{self.written} ({self.call})" if self.written else self.call
        return f"{called}{where}: {self.needed}"

    @property
    def place(self) -> str:
        """File and line without the folder; empty if unknown."""
        return "" if self.file is None else f"{Path(self.file).name}:{self.line}"


_NUMBERS: Final = re.compile(r"(?<![^.])\d+(?![^.])")
"""The places of modules in lists."""


def folded(calls: Sequence[Unsupported]) -> list[tuple[int, Unsupported]]:
    """Return the calls with their counts; calls that differ in module numbers only are one.

    These numbers become ``i``, as in ``layers.i.mlp``.
    """
    alike: dict[Unsupported, list[Unsupported]] = {}
    for each in calls:
        key = replace(each, module=_NUMBERS.sub("i", each.module))
        alike.setdefault(key, []).append(each)
    return [
        (len(same), key if len({each.module for each in same}) > 1 else same[0])
        for key, same in alike.items()
    ]


def refusal(calls: Sequence[Unsupported]) -> str:
    """Return the message about unsupported calls, with a line for each if there are several."""
    if len(calls) == 1:
        return f"from_torch cannot import {calls[0]}"
    lines = [
        f"  {each.place}  {each}{f' ({times} times)' if times > 1 else ''}"
        for times, each in folded(calls)
    ]
    return "\n".join([f"from_torch cannot import {len(calls)} calls:", *lines])
