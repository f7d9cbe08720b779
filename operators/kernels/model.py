"""A model as kernels in an order in which each finds what it reads.

A model may have loops; the kernels of each have to take one step after the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from fabric import ProgramError
from operators.kernels.kernel import Kernel, joint_of
from operators.kernels.recurrence import Recurrence, is_by_steps
from operators.kernels.tensors import Computed, Source, View

__all__ = ["Model", "OutOfStepError", "check_loops"]


@dataclass(frozen=True, eq=False)
class Edge:
    """One reading of what another kernel gives.

    Attributes:
        producer: the kernel that gives it.
        consumer: the kernel that reads it.
        operand: which of the consumer's operands.
    """

    producer: Kernel
    consumer: Kernel
    operand: int


@dataclass(frozen=True, eq=False)
class Model:
    """Kernels, and what comes out.

    Attributes:
        kernels: each behind those whose results it reads.
        outputs: what is stored, by name.
        loops: of the model, by number.
    """

    kernels: list[Kernel] = field(default_factory=list)
    outputs: dict[str, View] = field(default_factory=dict)
    loops: dict[int, Recurrence] = field(default_factory=dict)
    _names: Counter[str] = field(default_factory=Counter)

    def name(self, wish: str) -> str:
        """Return ``wish``, with a number where it is taken."""
        self._names[wish] += 1
        count = self._names[wish]
        return wish if count == 1 else f"{wish}_{count}"

    def edges(self) -> Iterator[Edge]:
        """Every reading of what a kernel gives, in the order of the readers."""
        giving: dict[Source, Kernel] = {}
        for kernel in self.kernels:
            for index, operand in enumerate(kernel.operands):
                producer = giving.get(operand.view.source)
                if producer is not None:
                    yield Edge(producer, kernel, index)
            giving.update(dict.fromkeys(kernel.results, kernel))

    def readers(self) -> dict[Source, int]:
        """How often each result is read, outputs included."""
        count: dict[Source, int] = defaultdict(int)
        for kernel in self.kernels:
            for operand in kernel.operands:
                count[operand.view.source] += 1
        for view in self.outputs.values():
            count[view.source] += 1
        return count

    def drop_unread(self) -> None:
        """Drop kernels that give results none of which anybody reads, but for what goes round."""
        closing = [each for loop in self.loops.values() for each in loop.behind.values()]
        while True:
            readers = self.readers()
            kept = [
                each
                for each in self.kernels
                if not each.results
                or any(readers.get(one) for one in each.results)
                or each in closing
            ]
            if len(kept) == len(self.kernels):
                break
            self.kernels[:] = kept
        for kernel in closing:
            kernel.is_read = bool(readers.get(kernel.result))

    def round(self, loop: Recurrence) -> tuple[Kernel, ...]:
        """Return the kernels that are on a way round a loop, in order."""
        begun, reached = set(loop.states.values()), set[Source]()
        for kernel in self.kernels:
            if kernel in begun or any(each.view.source in reached for each in kernel.operands):
                reached.update(kernel.results)
        ends, found = set(loop.behind.values()), list[Kernel]()
        read = set[Source]()
        for kernel in reversed(self.kernels):
            if kernel in ends or any(each in read and each in reached for each in kernel.results):
                found.append(kernel)
                if kernel not in begun:
                    read.update(each.view.source for each in kernel.operands)
        return tuple(reversed(found))


class OutOfStepError(ProgramError):
    """A kernel in a loop does not take one step after the other."""


def check_loops(model: Model) -> None:
    """Check that no kernel on a way round a loop waits for a later step.

    Raises:
        OutOfStepError: one would: what it reads, or what it gives, comes in another order.
    """
    for loop in model.loops.values():
        around = model.round(loop)
        for kernel in around:
            if not _is_by_steps(kernel, around, loop):
                raise OutOfStepError(
                    f"{kernel.name} ({kernel.family}) is in a loop whose number of "
                    f"steps is {loop.steps}, and does not take them one after the other: "
                    "expected calls that do",
                    file=loop.file,
                    line=loop.line,
                )


def _is_by_steps(kernel: Kernel, around: tuple[Kernel, ...], loop: Recurrence) -> bool:
    made = {result for each in around for result in each.results}
    for operand in kernel.operands:
        if operand.view.source not in made or kernel in loop.states.values():
            continue
        if not isinstance(operand.view.source, Computed):
            return False
        joint = joint_of(operand)
        if not joint.convertible or not is_by_steps(joint.pulled.layout, loop.steps):
            return False
    if kernel in loop.behind.values():
        return True
    return all(
        isinstance(each, Computed) and is_by_steps(each.layout, loop.steps)
        for each in kernel.results
    )
