"""Reading several streams of one structure, element by element."""

from __future__ import annotations

from fabric import Element, OperatorError, Ports

__all__ = ["peek_all", "take_all", "uneven"]


async def peek_all(ports: Ports) -> tuple[list[Element], int] | None:
    """Wait for the next element of every input; None when all have ended.

    Returns:
        The elements and the stop level that they share.

    Raises:
        OperatorError: their stops differ, or one input ended before another.
    """
    elements = [await source.peek() for source in ports.inputs]
    first = elements[0]
    if first is None:
        for source, element in zip(ports.inputs, elements, strict=True):
            if element is not None:
                raise uneven(ports, f"{source.producer.name} goes on")
        return None
    stop = first[1]
    present: list[Element] = []
    for source, element in zip(ports.inputs, elements, strict=True):
        if element is None:
            raise uneven(ports, f"{source.producer.name} has ended")
        if element[1] != stop:
            raise uneven(
                ports,
                f"{ports.inputs[0].producer.name} closes {stop} dimensions and "
                f"{source.producer.name} {element[1]}",
            )
        present.append(element)
    return present, stop


def take_all(ports: Ports) -> None:
    """Dequeue the elements that ``peek_all`` showed."""
    for source in ports.inputs:
        source.take()


def uneven(ports: Ports, found: str, expected: str = "equal stops on all inputs") -> OperatorError:
    """Return the error for inputs whose structures are not as they should be."""
    unit = ports.unit
    element = ports.inputs[0].elements
    return OperatorError(
        f"{unit.name}: {found}: expected {expected}, at cycle {unit.now:,}, element {element:,}",
        operator=unit.name,
        cycle=unit.now,
        element=element,
        file=unit.place.file,
        line=unit.place.line,
    )
