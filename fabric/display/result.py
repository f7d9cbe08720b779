"""Base classes of results, which a prompt and a notebook show by their sheets."""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import override

from fabric.display.parts import Sheet

# Layouts are imported when a result is shown, since wiring and runs do not need them.


class Shown:
    """An object that a notebook shows by its sheet."""

    __slots__ = ()

    def sheet(self) -> Sheet:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from fabric.display.html import document

        return document(self.sheet())


class Result(Shown):
    """A result: ``print``, a prompt and a notebook show its sheet.

    A class of your own defines ``sheet``, which yields parts: ``Title``, ``line``, ``Rows``,
    ``Fold`` and others.
    """

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        from fabric.display.terminal import plain_text

        return plain_text(self.sheet())


class ShownInShort(Shown):
    """An object with a ``repr`` of the fields that rich prints."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        raise NotImplementedError
