"""A module as a graph of calls, traced by ``torch.export``, and its tensors as numpy arrays.

Composite calls that have an importer (linear, attention, norms) stay whole. Other calls are
decomposed. Calls that work in place become calls that return a result.
"""

from __future__ import annotations

import io
import linecache
import logging
import operator
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import torch
from torch._subclasses import fake_tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from fabric import FabricError, ProgramError
from fabric.extend import refuse, users_code
from operators.kernels.progress import progress
from operators.torch.call import Spec, UnsupportedError
from operators.torch.chosen.settling import NeedsLengthError, Settled, has_lengths_of_data
from operators.torch.decompositions import decompositions
from operators.torch.lengths import (
    DynamicShapesError,
    at_lengths,
    contradicts,
    kept_trace,
    numbers_as_text,
    placeholders,
)
from operators.torch.loops.rolling import Rolled, has_loops
from operators.torch.registry import importer_of

_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


_COMPLEX: Final = np.dtype(np.complex64)
"""Tensors of this type are stored as pairs of real numbers."""


@dataclass(frozen=True, eq=False)
class Captured:
    """A module traced by torch.

    Attributes:
        tensors: the tensor of each placeholder: parameters, buffers and inputs.
        data: placeholders of floating-point inputs, which have data at run time only. Inputs of
            integers and booleans decide where data go, so they are constants of the trace.
        parameters: placeholders that are weights.
        inputs: placeholders that are arguments of the module.
        outputs: nodes, and constant numbers.
    """

    calls: tuple[Node, ...]
    tensors: Mapping[Node, torch.Tensor]
    data: frozenset[Node]
    parameters: frozenset[Node]
    inputs: frozenset[Node]
    outputs: tuple[Any, ...]


def capture(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    *,
    rolls: bool = True,
) -> Captured:
    """Trace ``module`` for arguments like these.

    Args:
        module: in evaluation mode.
        args: its positional arguments.
        kwargs: its keyword arguments.
        dynamic_shapes: as in ``from_torch``.
        rolls: whether equal steps become one loop body.
    """
    if not isinstance(module, torch.nn.Module):
        refuse(f"from_torch is given a {type(module).__name__}: expected a torch.nn.Module")
    if not isinstance(args, tuple):
        refuse(f"from_torch: args is a {type(args).__name__}: expected a tuple, such as (x,)")
    leaves = torch.utils._pytree.tree_leaves((args, dict(kwargs)))
    if any(isinstance(each, torch.Tensor) and each.is_complex() for each in leaves):
        refuse(
            "from_torch: an argument has complex numbers: expected real ones, which "
            "torch.view_as_complex pairs in the module"
        )
    progress(f"torch.export traces {type(module).__name__}")
    exported, graph = _trace_of(module, args, kwargs, dynamic_shapes, rolls=rolls)
    _check_only_returns(module, exported)
    arguments = iter(leaves)
    own_tensors = {**exported.state_dict, **exported.constants}
    tensors: dict[Node, torch.Tensor] = {}
    data, parameters, inputs = set(), set(), set()
    for node, spec in placeholders(exported, graph):
        if spec.kind is InputKind.TOKEN:
            continue  # a token only orders checks
        if spec.kind is not InputKind.USER_INPUT:
            tensors[node] = own_tensors[spec.target]
            if spec.kind is InputKind.PARAMETER:
                parameters.add(node)
        elif isinstance(value := next(arguments), torch.Tensor):
            tensors[node] = value
            inputs.add(node)
            if value.is_floating_point():
                data.add(node)
    (output,) = (node for node in graph.nodes if node.op == "output")
    calls = tuple(
        node for node in graph.nodes if node.op == "call_function" and not _is_check(node)
    )
    specs = zip(output.args[0], exported.graph_signature.output_specs, strict=True)
    outputs = tuple(each for each, spec in specs if spec.kind is OutputKind.USER_OUTPUT)
    return Captured(
        calls, tensors, frozenset(data), frozenset(parameters), frozenset(inputs), outputs
    )


def _trace_of(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    *,
    rolls: bool,
) -> tuple[ExportedProgram, torch.fx.Graph]:
    """Return a trace for these arguments, and its graph with their lengths."""
    trace = partial(_traced, module, args, kwargs)
    if dynamic_shapes is not None:
        leaves, structure = torch.utils._pytree.tree_flatten((args, dict(kwargs)))
        symbols = partial(trace, dynamic_shapes)
        kept = kept_trace(module, leaves, structure, dynamic_shapes, symbols)
        # A trace with symbols has no lengths that follow from known arguments, and no rolled loops.
        if kept is not None and not has_lengths_of_data(kept.graph):
            graph = at_lengths(kept, leaves)
            if not has_loops(graph):
                return kept, graph
    exported = trace(rolls=rolls)
    return exported, exported.graph


def _traced(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    *,
    rolls: bool = False,
) -> ExportedProgram:
    """Trace a module, and decompose calls that have no importer."""
    given = _where_the_weights_are(module, (args, dict(kwargs)))
    if dynamic_shapes is None:
        # A failed export with symbols marks its argument tensors. Detached tensors have no marks.
        given = torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, given)
    # ``users_code`` handles signals and errors that are not an Exception.
    with (
        users_code(f"tracing {type(module).__name__}"),
        torch.no_grad(),
        warnings.catch_warnings(),
        _grouped_experts(module),
        _KnownPlaces(),
    ):
        warnings.simplefilter("ignore")  # torch warns about itself
        try:
            with _without_dump():
                with numbers_as_text():
                    exported = torch.export.export(
                        module, *given, dynamic_shapes=dynamic_shapes, strict=False
                    )
                return _in_imported_calls(
                    exported, given, settles=dynamic_shapes is None, rolls=rolls
                )
        except GuardOnDataDependentSymNode as error:
            known = None if dynamic_shapes else _traced_for_numbers(module, given, rolls=rolls)
            return known or refuse(_message_of(module, error))
        except FabricError:
            raise
        except Exception as error:  # noqa: BLE001 - the user's module runs there
            message = str(error).strip().partition("\n")[0]
            refuse(
                f"torch.export cannot trace {type(module).__name__} for these arguments"
                f"{_line_of(module, error)}: {type(error).__name__}: {message}",
                DynamicShapesError if contradicts(error) else ProgramError,
            )


def _traced_for_numbers(
    module: torch.nn.Module, given: Any, *, rolls: bool
) -> ExportedProgram | None:
    """Trace a module for the values of its integers and booleans; None if that fails, too."""
    numbers = _KnownNumbers(given)
    hook = module.register_forward_pre_hook(numbers.known, with_kwargs=True)
    try:
        # The first trace has printed the output of the module already.
        silent = io.StringIO()
        with redirect_stdout(silent), redirect_stderr(silent), _without_dump():
            with numbers:
                exported = torch.export.export(module, *given, strict=False)
            return _in_imported_calls(exported, given, settles=True, rolls=rolls)
    except Exception:  # noqa: BLE001 - the first error is the one to show
        return None
    finally:
        hook.remove()


class _KnownNumbers(TorchFunctionMode):
    """Computes calls that read only known integers and booleans. Other calls are traced."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        self._given: Final = given
        self._traced: Final[dict[int, Any]] = {}

    def known(self, _: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        """Replace traced arguments by known ones before the module runs."""
        traced, structure = torch.utils._pytree.tree_flatten((args, kwargs))
        given = torch.utils._pytree.tree_leaves(self._given)
        leaves = [
            value.clone() if _is_known(value) else leaf
            for leaf, value in zip(traced, given, strict=True)
        ]
        self._traced.update({id(new): old for new, old in zip(leaves, traced, strict=True)})
        self._leaves = leaves  # a tensor that is alive keeps its id
        return torch.utils._pytree.tree_unflatten(leaves, structure)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if tensors and all(map(_is_known, tensors)):
            with _disable_current_modes():
                result = func(*args, **kwargs)
            if not any(map(_is_float, torch.utils._pytree.tree_leaves(result))):
                return result
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            args = (args[0], _places_of(args[1]), *args[2:])
        args, kwargs = torch.utils._pytree.tree_map(
            lambda each: self._traced.get(id(each), each), (args, kwargs)
        )
        return func(*args, **kwargs)


def _places_of(index: Any) -> tuple[Any, ...]:
    """Return an index with known masks replaced by the places that they select."""
    places: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        if _is_known(part) and part.dtype == torch.bool:
            with _disable_current_modes():
                places += part.nonzero(as_tuple=True)
        else:
            places.append(part)
    return tuple(places)


def _is_known(value: Any) -> bool:
    """Whether a value is a tensor of integers or booleans that PyTorch does not trace."""
    return type(value) is torch.Tensor and not (value.is_meta or _is_float(value))


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _in_imported_calls(
    exported: ExportedProgram, given: Any, *, settles: bool, rolls: bool
) -> ExportedProgram:
    """Return a trace of importable calls, with constant lengths and rolled loops if possible."""
    try:
        exported = exported.run_decompositions({})
    except AssertionError:
        # PyTorch fails to rename two lengths that equal one constant.
        exported, _ = _settled(exported, given)
    needing = None
    if settles and has_lengths_of_data(exported.graph):
        exported, needing = _settled(exported, given)
    exported = _taken_apart(exported)
    if rolls:
        exported = _rolled(exported, given)
    for node in exported.graph.nodes if needing is not None else ():
        node.meta["needs_length"] = needing
    return exported


def _settled(exported: ExportedProgram, given: Any) -> tuple[ExportedProgram, Node | None]:
    """Return a trace with constant lengths; or the same trace, and a call that needs a length."""
    module = Settled(exported.module(), torch.utils._pytree.tree_leaves(given))
    try:
        settled = torch.export.export(module, *given, strict=False)
    except NeedsLengthError as error:
        return exported, error.node
    return settled.run_decompositions({}), None


def _rolled(exported: ExportedProgram, given: Any) -> ExportedProgram:
    """Return a trace with equal steps rolled into loops; the same trace if it has no loops."""
    if not has_loops(exported.graph):
        return exported
    module = Rolled(exported.module())
    try:
        rolled = torch.export.export(module, *given, strict=False)
    except Exception:  # noqa: BLE001 - some calls cannot take all steps as one tensor
        return exported
    return _taken_apart(rolled.run_decompositions({}))


class _KnownPlaces(TorchFunctionMode):
    """Indexes meta tensors by tensors, not by lists: PyTorch would drop the lists' numbers."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.Tensor.__getitem__ and args[0].is_meta:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(isinstance(part, list) for part in index):
                places = [torch.tensor(part) if isinstance(part, list) else part for part in index]
                args = args[0], tuple(places)
        return func(*args, **(kwargs or {}))


@contextmanager
def _grouped_experts(module: torch.nn.Module) -> Iterator[None]:
    """Trace the experts of transformers in their implementation by grouped products.

    The other implementations read the number of rows of each expert from data. A trace has no data.
    """
    name = "_experts_implementation"
    configs = {
        id(config): config
        for each in module.modules()
        if hasattr(config := getattr(each, "config", None), name)
    }
    originals = [(config, getattr(config, name)) for config in configs.values()]
    try:
        for config, _ in originals:
            setattr(config, name, "grouped_mm")
        yield
    finally:
        for config, before in originals:
            setattr(config, name, before)


def _check_only_returns(module: torch.nn.Module, exported: ExportedProgram) -> None:
    specs = exported.graph_signature.output_specs
    returns = {OutputKind.USER_OUTPUT, OutputKind.TOKEN}
    written = [str(each.target) for each in specs if each.kind not in returns]
    if written:
        refuse(
            f"from_torch is given {type(module).__name__}, which writes to {', '.join(written)}: "
            "expected a module that leaves its buffers and its arguments as they are"
        )


def _is_check(node: Node) -> bool:
    """Whether a call checks for errors of linear algebra, or reads the result of such a check."""
    if node.target is operator.getitem:
        (source, _) = node.args
        return isinstance(source, Node) and _is_check(source)
    wraps = node.target is torch.ops.higher_order.with_effects
    return wraps and node.args[1] is torch.ops.aten._linalg_check_errors.default


def _where_the_weights_are(module: torch.nn.Module, given: Any) -> Any:
    """Return the arguments; on the meta device if a weight or an argument is on it.

    A trace runs on one device. Known numbers are read from the original arguments.
    """
    leaves = [*module.parameters(), *torch.utils._pytree.tree_leaves(given)]
    if not any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in leaves):
        return given
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.to("meta"), given)


def _taken_apart(exported: ExportedProgram) -> ExportedProgram:
    """Decompose the calls that have a decomposition and no importer.

    Calls that read only integers stay: planning computes them.
    """
    rules = decompositions()
    targets = _computing(exported)
    while True:
        table = {
            target: rules[target]
            for target in targets
            if target in rules and not importer_of(str(target))
        }
        if not table:
            return exported
        before, exported = targets, exported.run_decompositions(table)
        targets = _computing(exported)
        if targets == before:
            return exported


def _computing(exported: ExportedProgram) -> set[Any]:
    """Return the targets of calls that depend on weights or floating-point inputs."""
    reached = {
        node
        for node, spec in placeholders(exported, exported.graph)
        if spec.kind in {InputKind.USER_INPUT, InputKind.PARAMETER}
        and isinstance(value := node.meta.get("val"), torch.Tensor)
        and value.is_floating_point()
    }
    for node in exported.graph.nodes:
        is_size = str(node.target).startswith("aten.sym_")
        if not is_size and not reached.isdisjoint(node.all_input_nodes):
            reached.add(node)
    return {node.target for node in reached if node.op == "call_function"}


def target_of(node: Node) -> str:
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else node.name


def written_of(node: Node) -> str:
    """Return the function that the user's line calls, such as ``index_add``; empty if unknown."""
    _, name = node.meta.get("torch_fn") or ("", "")
    kind, _, name = str(name).partition(".")
    # Operators such as brackets have no name in the user's line.
    return "" if kind == "OpOverload" or name.startswith("__") else name


def specs_of(node: Node) -> tuple[Spec, ...]:
    """Return the tensors that a node returns.

    Raises:
        UnsupportedError: tiles cannot hold the element type, or a size depends on data.
    """
    value = node.meta["val"]
    tensors = value if isinstance(value, tuple | list) else (value,)
    return tuple(
        Spec(_sizes(node, x), _COMPLEX if x.dtype == torch.complex64 else dtype_of(x.dtype))
        for x in tensors
        if isinstance(x, torch.Tensor)
    )


def _sizes(node: Node, tensor: torch.Tensor) -> tuple[int, ...]:
    if not all(isinstance(size, int) for size in tensor.shape):
        raise UnsupportedError(
            f"data decide the size of its result, {list(tensor.shape)}{_reader_of_length(node)}: "
            "expected a known one"
        )
    return tuple(tensor.shape)


def check_is_known(node: Node) -> None:
    """Refuse a call that reads a number that data decide."""
    if node.target in (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default):
        raise UnsupportedError(
            f"data decide the number that it reads{_reader_of_length(node)}: expected a known one"
        )


def _reader_of_length(node: Node) -> str:
    """Return a clause that names the call which needs a length of data; empty if unknown."""
    needing = node.meta.get("needs_length")
    if needing is None:
        return ""
    if needing.op == "output":
        return ", which the module returns"
    _, line = place_of(needing)
    at = "" if line is None else f" in line {line}"
    return f", which {written_of(needing) or target_of(needing)}{at} needs"


def module_of(node: Node) -> str:
    modules = node.meta.get("nn_module_stack") or {"": ("", None)}
    path, _ = list(modules.values())[-1]
    return str(path)


def place_of(node: Node) -> tuple[str | None, int | None]:
    """Return file and line of the innermost frame that is not in torch; None if unknown."""
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    own = [frame for frame in frames if f"{torch.__path__[0]}/" not in frame["file"]] or frames
    return (own[-1]["file"], int(own[-1]["line"])) if own else (None, None)


_LOGGERS: Final = [logging.getLogger(each.__name__) for each in (fake_tensor, symbolic_shapes)]


def _message_of(module: torch.nn.Module, error: Exception) -> str:
    return (
        f"torch.export cannot trace {type(module).__name__}: its control flow depends on data"
        f"{_line_of(module, error)}: expected "
        "calls that are the same for all data; torch.where chooses between two results"
    )


def _line_of(module: torch.nn.Module, error: Exception) -> str:
    defining = [sys.modules.get(type(part).__module__) for part in module.modules()]
    files = {getattr(python_module, "__file__", None) for python_module in defining}
    own = {file for file in files if file and not file.startswith(f"{torch.__path__[0]}/")}
    traced = [(frame["file"], int(frame["line"])) for frame in _FRAME.finditer(str(error))]
    raising = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    frames = [place for place in (*raising, *traced) if place[0] in own]
    if not frames:
        return ""
    file, line = frames[-1]
    return f" at {Path(file).name}:{line}, `{linecache.getline(file, line).strip()}`"


@contextmanager
def _without_dump() -> Iterator[None]:
    """Suppress what PyTorch prints with an error. The module's own output is printed."""
    printed, dump = io.StringIO(), ""
    for logger in _LOGGERS:
        logger.addFilter(_nothing)
    try:
        with redirect_stderr(printed):
            yield
    except symbolic_shapes.GuardOnDataDependentSymNode as error:
        dump = f"{getattr(error, 'partial_fx_graph', '')}\n"
        raise
    finally:
        for logger in _LOGGERS:
            logger.removeFilter(_nothing)
        sys.stderr.write(printed.getvalue().replace(dump, ""))


def _nothing(record: logging.LogRecord) -> bool:  # noqa: ARG001 - a filter of logging
    return False


_DTYPES: Final[dict[object, np.dtype]] = {
    torch.float32: np.dtype(np.float32),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    torch.float8_e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: np.dtype(ml_dtypes.float8_e5m2),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.uint8: np.dtype(np.uint8),
    torch.bool: np.dtype(np.bool_),
}

_BITS: Final = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e5m2: torch.uint8,
}
"""Types without a counterpart in numpy, and integers of the same size."""


def dtype_of(dtype: torch.dtype) -> np.dtype:
    if dtype not in _DTYPES:
        supported = ", ".join(str(each).removeprefix("torch.") for each in _DTYPES)
        name = str(dtype).removeprefix("torch.")
        raise UnsupportedError(f"its element type is {name}: expected one of {supported}")
    return _DTYPES[dtype]


def array_of(tensor: torch.Tensor) -> np.ndarray:
    dtype = dtype_of(tensor.dtype)
    tensor = tensor.detach().resolve_conj().resolve_neg()
    bits = _BITS.get(tensor.dtype)
    if bits is not None:
        tensor = tensor.contiguous().view(bits)
    array: np.ndarray = tensor.numpy()
    return array.astype(dtype, copy=False) if bits is None else array.view(dtype)
