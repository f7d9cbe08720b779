"""The importers by the name of the call, and the messages about unsupported calls."""

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
"""The result of a call: one tensor or several, with None for a tensor that is never read."""

Given = TypeVar("Given")

Importer: TypeAlias = Callable[[Importing, Call], Result]

Own = TypeVar("Own", bound=Importer)

Maker: TypeAlias = Callable[[Importing, View], View]
"""Plans a kernel that brings a tensor from an opaque form into a layout."""

_MAKERS: Final[dict[type, Maker]] = {}
_IMPORTERS: Final[dict[tuple[str, type | None], Importer]] = {}


def imports(*targets: str, of: type | None = None) -> Callable[[Own], Own]:
    """Register a function that imports calls of ``targets``, such as ``aten.relu.default``.

    It plans the kernels of one call and returns the views of the call's results. A later
    registration of a target replaces an earlier one.

    Args:
        targets: the calls.
        of: restricts the importer to calls on a tensor in an opaque form of this type. It takes
            precedence over importers without ``of``.
    """

    def register(importer: Own) -> Own:
        _IMPORTERS.update(dict.fromkeys(((target, of) for target in targets), importer))
        return importer

    return register


def importer_of(target: str, forms: Iterable[type] = ()) -> Importer | None:
    """Return the importer of calls of ``target`` on ``forms``; None if it has no importer."""
    return next((_IMPORTERS[key] for key in _keys(target, forms)), _IMPORTERS.get((target, None)))


def takes_opaque(target: str, forms: Iterable[type]) -> bool:
    return next(_keys(target, forms), None) is not None


def _keys(target: str, forms: Iterable[type]) -> Iterator[tuple[str, type | None]]:
    return (key for form in forms if (key := (target, form)) in _IMPORTERS)


def makes_whole(form: type) -> Callable[[Maker], Maker]:
    """Register a function that brings tensors from an opaque form into a layout.

    The first call that needs the layout calls it. Later calls share the view.
    """

    def register(maker: Maker) -> Maker:
        _MAKERS[form] = maker
        return maker

    return register


def whole(importing: Importing, view: View) -> View:
    """Return a view of a tensor in a layout. Opaque forms are brought into a layout."""
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
    return tuple(sorted({target for target, _ in _IMPORTERS}))


@dataclass(frozen=True)
class Unsupported:
    """A call that cannot be imported.

    Attributes:
        written: the function in the user's line, such as ``index_add``; empty if PyTorch does not
            record it.
        call: its target in the trace, such as ``aten.index_put.default``.
        module: path of the calling module.
        file, line: in the user's model.
        needed: what the import needs.
    """

    written: str
    call: str
    module: str
    file: str | None
    line: int | None
    needed: str

    def __str__(self) -> str:
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
    """Return distinct calls with their counts.

    Calls whose modules differ only in numbers count as one, with ``i`` in place of the numbers, as
    in ``layers.i.mlp``.
    """
    alike: dict[Unsupported, list[Unsupported]] = {}
    for call in calls:
        key = replace(call, module=_NUMBERS.sub("i", call.module))
        alike.setdefault(key, []).append(call)
    return [
        (len(same), key if len({call.module for call in same}) > 1 else same[0])
        for key, same in alike.items()
    ]


def refusal(calls: Sequence[Unsupported]) -> str:
    if len(calls) == 1:
        return f"from_torch cannot import {calls[0]}"
    lines = [
        f"  {call.place}  {call}{f' ({times} times)' if times > 1 else ''}"
        for times, call in folded(calls)
    ]
    return "\n".join([f"from_torch cannot import {len(calls)} calls:", *lines])
