"""Checks of operators, their inputs and results while a program is wired."""

from __future__ import annotations

import typing
from dataclasses import fields
from numbers import Real
from typing import Any, NoReturn

from fabric.graph.arguments.described import Described, frozen_error, refuse, settle
from fabric.graph.values.expression import Expression
from fabric.graph.values.stream_type import VALUE_TYPES, StreamType, TileType, Types
from fabric.graph.wiring.costs import NEEDS, Costs, OffChipTensor, Rates, Work
from fabric.graph.wiring.operator import Node, Operator
from fabric.graph.wiring.stream import Stream
from fabric.messages.errors import FabricError, ShapeError
from fabric.messages.place import Place, defining_place, is_ours
from fabric.messages.text import found_text, one_of
from fabric.messages.users_code import raised


def refuse_input(operator: Operator, position: int, found: object) -> NoReturn:
    hint = ""
    if isinstance(found, Operator):
        hint = f", such as {type(found).__name__}(...)(...)"
    elif isinstance(found, tuple | list) and any(isinstance(item, Stream) for item in found):
        hint = ", such as one of them"
    refuse(
        f"{type(operator).__name__} input {position} is {found_text(found)}: "
        f"expected a stream{hint}"
    )


def outputs_of(node: Node, types: object) -> tuple[Stream, ...]:
    """Check the ``types`` that ``infer`` returned, and return streams of these types."""
    operator = node.operator
    if not isinstance(types, tuple | list) or {type_.__class__ for type_ in types} - {StreamType}:
        _refuse_result(operator, "infer", types, "a tuple of StreamTypes, one for each output")
    outputs = []
    for port, type_ in enumerate(types):
        if type_.value.__class__ not in VALUE_TYPES or operator.is_users:
            settle(type_, ShapeError, f"{type(operator).__name__} output {port}")
        outputs.append(Stream(node, port, type_))
    ports = range(len(outputs))
    if operator.is_users and not set(operator.secondary_outputs).issubset(ports):
        numbers = ", ".join(map(str, ports)) or "no number"
        refuse(
            f"{type(operator).__name__}: secondary_outputs is "
            f"{found_text(operator.secondary_outputs)}: expected a tuple of {numbers}",
            place=node.place,
        )
    return tuple(outputs)


def result_of(operator: Operator, method: str, place: Place | None, *arguments: object) -> Any:
    """Return the result of a method; an exception becomes an error at its line or at ``place``."""
    try:
        return getattr(operator, method)(*arguments)
    except FabricError as error:
        if error.file is None and place is not None:
            error.file, error.line = place
        raise
    except BaseException as error:
        called = f"{type(operator).__name__}: {_method_text(operator, method)}"
        users = place if _has_users_part(operator) else None
        failure = frozen_error(error) or raised(called, error, users)
        if failure.file is None:
            raise
        raise failure from error


def costs_of(node: Node, inputs: Types, outputs: Types) -> Costs:
    operator = node.operator
    costs: object = result_of(operator, "costs", node.place, inputs, outputs)
    if not isinstance(costs, Costs):
        _refuse_result(operator, "costs", costs, "Costs")
    if operator.is_users:
        _check_amounts(operator, "costs", costs)
    return costs


def work_of(operator: Operator, inputs: Types, outputs: Types, rates: Rates) -> Work | None:
    work: object = result_of(operator, "work", None, inputs, outputs, rates)
    if work is not None and not isinstance(work, Work):
        _refuse_result(operator, "work", work, "Work or None")
    if work is not None and not is_ours(type(operator)):
        _check_work(
            operator, work, {"closing": len(inputs), "sees": len(inputs), "late": len(outputs)}
        )
    return work


def _check_amounts(operator: Operator, method: str, stated: Costs | Work) -> None:
    for field in fields(stated):
        amount = getattr(stated, field.name)
        if field.type != "Dim":
            continue
        if not isinstance(amount, Real | Expression):
            expected = f"a number or an expression of symbols as {field.name}"
            _refuse_result(operator, method, amount, expected)
        if isinstance(amount, Real) and amount < 0:
            _refuse_result(operator, method, amount, f"a number of at least 0 as {field.name}")


def _check_work(operator: Operator, work: Work, ports: dict[str, int]) -> None:
    _check_amounts(operator, "work", work)
    for name, count in ports.items():
        listed: object = getattr(work, name)
        fits = isinstance(listed, tuple) and all(port in range(count) for port in listed)
        if listed is not None and not fits:
            numbers = ", ".join(map(str, range(count))) or "no number"
            _refuse_result(operator, "work", listed, f"a tuple of {numbers} as {name}, or None")
    needs = typing.get_args(NEEDS)
    if work.needs not in needs:
        _refuse_result(
            operator, "work", work.needs, f"{one_of(list(needs), str(work.needs))} as needs"
        )
    if not isinstance(work.tile, TileType | None):
        _refuse_result(operator, "work", work.tile, "the type of a tile as tile, or None")


def off_chip_tensor_of(node: Node) -> OffChipTensor | None:
    operator = node.operator
    types = node.input_types, node.output_types
    tensor: object = result_of(operator, "off_chip_tensor", node.place, *types)
    if tensor is not None and not isinstance(tensor, OffChipTensor):
        _refuse_result(operator, "off_chip_tensor", tensor, "an OffChipTensor or None")
    return tensor


def _has_users_part(operator: Operator) -> bool:
    parts = (value for value in vars(operator).values() if isinstance(value, Described))
    return not all(is_ours(type(part)) for part in (operator, *parts))


def _refuse_result(operator: Operator, method: str, result: object, expected: str) -> NoReturn:
    member: object = getattr(type(operator), method)
    verb = "returned" if callable(member) else "is"
    refuse(
        f"{type(operator).__name__}: {_method_text(operator, method)} {verb} {found_text(result)}: "
        f"expected {expected}",
        place=defining_place(getattr(member, "fget", member)),
    )


def _method_text(operator: Operator, method: str) -> str:
    return f"{method}()" if callable(getattr(type(operator), method)) else method
