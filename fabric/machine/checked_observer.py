"""A user's observer: the same as any other, until it fails, which ends the run with its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from typing_extensions import override

from fabric.engine.observer import Observer, Transferred, Watched
from fabric.engine.unit import Unit
from fabric.telling.errors import FabricError, ProgramError
from fabric.telling.place import defining_place
from fabric.telling.users_code import raised
from fabric.telling.wording import found_text

__all__ = ["CheckedObserver"]

_TOLD: Final = tuple(
    name
    for name, method in vars(Observer).items()
    if callable(method) and not name.startswith("_") and name not in ("begin", "watch")
)
"""The methods that are called while a run goes on."""


class CheckedObserver(Observer):
    """Tells a user's observer what it is told, up to the first thing that the user's code raises.

    What is raised before the run is raised; what is raised while it goes on is kept, and ends it.
    """

    def __init__(self, observer: Observer, fail: Callable[[int, FabricError], object]) -> None:
        """Stand for ``observer``; ``fail`` is told in which cycle it raised what."""
        self._observer: Final = observer
        self._fail: Final = fail
        self._failed = False
        for method in _TOLD:
            setattr(self, method, self._guarded(method, getattr(observer, method), _unit_of))

    @override
    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        try:
            self._observer.begin(units, next_order)
        except BaseException as error:
            raise self._error("begin", error) from error

    @override
    def watch(self, channel: Watched) -> Transferred | None:
        try:
            tell: object = self._observer.watch(channel)
        except BaseException as error:
            raise self._error("watch", error) from error
        if tell is None:
            return None
        if not callable(tell):
            file, line = defining_place(self._observer.watch) or (None, None)
            raise ProgramError(
                f"observer {self._name}: watch() returned {found_text(tell)}: expected a function, "
                "or None",
                file=file,
                line=line,
            )
        return self._guarded("watch", tell, lambda *_: channel.consumer)

    def _guarded(
        self, method: str, tell: Callable[..., object], unit_of: Callable[..., Unit]
    ) -> Callable[..., None]:
        """Return what calls ``tell`` of the observer's ``method`` until the observer has failed."""

        def told(*arguments: Any) -> None:
            if self._failed:
                return
            try:
                tell(*arguments)
            except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
                cycle = unit_of(*arguments).now
                failure = self._error(method, error, f", at cycle {cycle:,}")
                self._failed = True
                self._fail(cycle, failure)

        return told

    def _error(self, method: str, error: BaseException, when: str = "") -> FabricError:
        place = defining_place(getattr(self._observer, method))
        return raised(f"observer {self._name}: {method}()", error, place, when)

    @property
    def _name(self) -> str:
        return type(self._observer).__name__


def _unit_of(about: Unit | Watched, *_: object) -> Unit:
    """Return the unit that a method of an observer is told of, which gets it first."""
    return about if isinstance(about, Unit) else about.consumer
