"""Programs: dataflow graphs of operators, checked while they are wired."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self

from fabric.dims import Dim, symbol
from fabric.errors import ProgramError, ShapeError
from fabric.graph import Node, Operator, Wiring, current_program
from fabric.hardware import Hardware
from fabric.place import Place, calling_place, raising_place
from fabric.stream import Stream

__all__ = ["Program", "hardware_scope"]

_hardware: ContextVar[Hardware | None] = ContextVar("hardware", default=None)


@contextlib.contextmanager
def hardware_scope(hardware: Hardware) -> Iterator[None]:
    """Give ``hardware`` to every program made inside."""
    token = _hardware.set(hardware)
    try:
        yield
    finally:
        _hardware.reset(token)


class Program:
    """A dataflow graph of operators.

    Used as a context: operators called inside are added to it.

    Attributes:
        name: of the program.
        hardware: what the program leaves open.
        channel_depth: of channels that are given none.
        flops_per_cycle: of compute operators that are given none.
        mode: ``timing`` or ``functional`` where the caller does not say.
        nodes: in wiring order.
        expected: callables that compute the stored outputs, by name.
        extra: callables that compute further fields of the report, by name.
    """

    def __init__(
        self,
        name: str,
        *,
        mode: str = "timing",
        channel_depth: int | None = None,
        flops_per_cycle: int | None = None,
    ) -> None:
        """Start an empty program on the hardware in scope."""
        self.name: Final = name
        self.mode: Final = mode
        self.hardware: Final = _hardware.get() or Hardware()
        self.channel_depth: Final = channel_depth or self.hardware.channel.depth
        self.flops_per_cycle: Final = flops_per_cycle or self.hardware.compute.flops_per_cycle
        self.place: Final = calling_place()
        self.nodes: list[Node] = []
        self.expected: dict[str, Callable[[], Any]] = {}
        self.extra: dict[str, Callable[[], object]] = {}
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._symbols: set[str] = set()
        self._shared: dict[tuple[object, ...], Dim] = {}
        self._token: Any = None

    def __enter__(self) -> Self:
        """Collect the operators that are called from here on."""
        self._token = current_program.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop collecting."""
        current_program.reset(self._token)

    def expect(self, **outputs: Callable[[], Any]) -> None:
        """Say what stored outputs shall be: callables that return arrays, functional mode only."""
        self.expected.update(outputs)

    def ask(self, what: str, question: Callable[[], Any]) -> Any:
        """Call what the program was given, after the run.

        Raises:
            ProgramError: it raised.
        """
        try:
            return question()
        except Exception as error:
            file, line = raising_place(error) or self.place
            raise ProgramError(
                f"{what} raised {type(error).__name__}: {error}", file=file, line=line
            ) from error

    def add(
        self, operator: Operator, inputs: tuple[Stream, ...], place: Place
    ) -> tuple[Stream, ...]:
        """Wire ``operator`` behind ``inputs`` and return its outputs.

        Raises:
            ShapeError: the operator refuses the inputs; it names ``place``.
            ProgramError: an input is no stream, or the name is taken.
        """
        kind = type(operator).__name__
        for position, stream in enumerate(inputs):
            if not isinstance(stream, Stream):
                raise ProgramError(
                    f"{kind} input {position} is {type(stream).__name__}: expected a stream",
                    file=place.file,
                    line=place.line,
                )
        node = Node(operator, self._name(operator, place), place, inputs)
        try:
            types = operator.infer(Wiring(self, node.name), *inputs)
        except ShapeError as error:
            if error.file is None:
                error.file, error.line = place
            raise
        node.outputs = tuple(Stream(node, port, each) for port, each in enumerate(types))
        self.nodes.append(node)
        return node.outputs

    def symbol(self, name: str, *, ragged: bool = False, shared_by: tuple[object, ...] = ()) -> Dim:
        """See ``Wiring.symbol``."""
        if shared_by and shared_by in self._shared:
            return self._shared[shared_by]
        unique = name
        number = 1
        while unique in self._symbols:
            number += 1
            unique = f"{name}_{number}"
        self._symbols.add(unique)
        result = symbol(unique, ragged=ragged)
        if shared_by:
            self._shared[shared_by] = result
        return result

    def _name(self, operator: Operator, place: Place) -> str:
        name = operator.name
        if name is None:
            base = re.sub(r"(?<!^)(?=[A-Z])", "_", type(operator).__name__.lstrip("_")).lower()
            self._counts[base] = count = self._counts.get(base, 0) + 1
            name = f"{base}_{count}"
        if name in self._names:
            raise ProgramError(
                f"{type(operator).__name__} is named {name!r}: expected a name not in use yet",
                file=place.file,
                line=place.line,
            )
        self._names.add(name)
        return name
