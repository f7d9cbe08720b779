"""Programs: dataflow graphs of operators, checked while they are wired."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from types import TracebackType
from typing import Annotated, Final, Literal, Self, TypeAlias, TypeVar

from typing_extensions import override

from fabric.display.parts import Sheet
from fabric.display.result import ShownInShort
from fabric.graph.arguments.checks import Bounds, check_of
from fabric.graph.arguments.described import checked, frozen_error, refuse
from fabric.graph.hardware.description import Hardware, PlacementDescription
from fabric.graph.hardware.latency import Hop, Site
from fabric.graph.values.dims import (
    Dim,
    dim_text,
    free_symbols,
    is_ragged,
    is_total,
    undecided_in,
)
from fabric.graph.values.expression import Expression, Symbol
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.expectation import Bound, Expectation, Tolerance
from fabric.graph.wiring.mistakes import outputs_of, refuse_input, result_of
from fabric.graph.wiring.names import Extra
from fabric.graph.wiring.operator import (
    ComputeOperator,
    Node,
    Operator,
    Wired,
    Wiring,
    applied_by,
    current_program,
)
from fabric.graph.wiring.sites import Placement
from fabric.graph.wiring.stream import Stream, check_orders
from fabric.messages.place import Place, calling_place
from fabric.messages.text import counted, found_text, visible
from fabric.messages.users_code import users_code

Answer = TypeVar("Answer")


_hardware: ContextVar[Hardware | None] = ContextVar("hardware", default=None)


@checked
@contextlib.contextmanager
def hardware_scope(hardware: Hardware) -> Iterator[None]:
    """Use ``hardware`` for each program that is made inside the ``with`` statement."""
    token = _hardware.set(hardware)
    try:
        yield
    finally:
        _hardware.reset(token)


class Program(ShownInShort, Wired):
    """A dataflow graph of operators.

    Use it in a ``with`` statement: operators that are called inside are added to it.

    Attributes:
        hardware: values that the program leaves open, and the placement of its tensors.
        channel_depth: the depth of channels without a stated depth, in elements.
        leaves_depth_open: whether ``channel_depth`` is the default of the hardware.
        depths: stated depths of single channels, in elements, by ``consumer.input``.
        hops: stated latencies of single channels, by ``consumer.input``.
        deepened: the lines that call ``deepen``, by ``consumer.input``.
        placement: the sites of the units on a mesh; None if not stated.
        flops_per_cycle: the compute bandwidth of operators without a stated bandwidth.
        mode: ``timing`` or ``functional``, unless the caller states a mode.
        nodes: the operators in wiring order.
        expected: expectations of stored outputs, by name.
        extra: callables that compute further fields of the report, by name.
        token_count: tokens of a language model that a run processes; None if unknown.
        stands_for_runs: the number of equal runs that the program represents.
        totals: values of sums of streams' counts, from ``bind``.
        undecided: pairs of dimensions that an operator expects to be equal and that may differ.
    """

    @checked
    def __init__(
        self,
        name: str,
        *,
        mode: Annotated[str, check_of(Literal["timing", "functional"])] = "timing",
        channel_depth: Annotated[int, Bounds(1)] | None = None,
        flops_per_cycle: Annotated[int, Bounds(1)] | None = None,
        placement: PlacementDescription | None = None,
    ) -> None:
        """Start an empty program on the hardware in scope.

        Raises:
            ProgramError: a value has another type, or a depth or a bandwidth is below 1.
        """
        super().__init__(visible(name), (_hardware.get() or Hardware()).placed(placement))
        self.mode: Final = mode
        self.place: Final = calling_place()
        self.leaves_depth_open: Final = channel_depth is None
        self.channel_depth: Final = channel_depth or self.hardware.channel.depth
        self.flops_per_cycle: Final = flops_per_cycle or self.hardware.compute.flops_per_cycle
        self.depths: Final[dict[str, int]] = {}
        self.hops: Final[dict[str, Hop]] = {}
        self.deepened: Final[dict[str, Place]] = {}
        self.placement: Placement | None = None
        self.nodes: list[Node] = []
        self.expected: dict[str, Expectation] = {}
        self.extra: Final = Extra()
        self.token_count: TokenCount | None = None
        self.stands_for_runs = 1
        self.totals: dict[Expression, int] = {}
        self.undecided: list[tuple[Node, Dim, Dim]] = []
        self._pairs: list[tuple[Dim, Dim]] = []
        self._wiring = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Add the operators that are called from now on.

        Raises:
            ProgramError: a program is being wired already.
        """
        other = current_program.get()
        if other is not None:
            refuse(
                f"program {self.name!r} is opened inside of program {other.name!r}: "
                "expected one `with Program(...)` at a time"
            )
        token = current_program.set(self)
        self._wiring.callback(current_program.reset, token)
        self._pairs = self._wiring.enter_context(undecided_in())
        self._wiring.enter_context(only_young_garbage())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop adding operators.

        Raises:
            ProgramError: a user's ``__init__`` has set a field of a frozen operator.
        """
        self._wiring.close()
        mistake = frozen_error(error)
        if mistake is not None:
            raise mistake from error

    @override
    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "name", self.name
        yield "operators", len(self.nodes)
        yield "symbols", len(self.symbols)

    # The only imports of upper rooms: these draw a program.
    def sheet(self) -> Sheet:
        """Yield the graph and tables of operators and channels."""
        from fabric.analysis.drawing.program_sheet import program_sheet

        return program_sheet(self)

    def _repr_svg_(self) -> str | None:
        from fabric.analysis.drawing.program_sheet import program_svg

        return program_svg(self)

    @checked
    def expect(
        self,
        *,
        rtol: Bound | None = None,
        atol: Bound | None = None,
        equal_nan: bool = False,
        **outputs: Callable[[], object],
    ) -> None:
        """State expected values of stored outputs; functional mode compares them with the run.

        The run estimates the error of each number, from the loads to the stores. Numbers that are
        only moved are exact in their element type. A computed number may be off by 5 times its
        estimated error, and by its last rounding. The root mean square of the errors may be 2.5
        times that of the estimated errors in a row, and 1.5 times in the whole output. In an exact
        run, each rounding may err by 1e-9. Integers and booleans have to be equal, unless an
        estimated error reaches a tie.

        If both tolerances are given, an element is right if ``|found - wanted| <= atol + rtol *
        |wanted|``, as in ``numpy.testing.assert_allclose``, and no other check applies. If only
        one is given, its term is added to the bound that follows from the estimated errors.

        Args:
            rtol: relative tolerance of the outputs of this call, from 0 on.
            atol: absolute tolerance, in the outputs' own unit, from 0 on.
            equal_nan: a NaN is right if a NaN is expected.
            outputs: functions that return the array, by the name of the output.

        Raises:
            ProgramError: an output has an expectation already, its expectation is not a function,
                or a tolerance is not a number from 0 on.
        """
        tolerance = Tolerance(rtol, atol, equal_nan)
        if not outputs:
            refuse("expect: no output is named: expected an output, such as y=lambda: x @ w")
        functions: Mapping[str, object] = outputs
        for name, compute in functions.items():
            if not callable(compute):
                expected = f"a function that returns the array, such as {name}=lambda: array"
                refuse(f"expect: {name} is {found_text(compute)}: expected {expected}")
            if name in self.expected:
                refuse(
                    f"expect: {name} is expected at {self.expected[name].place} already: "
                    "expected one function for each output"
                )
            self.expected[name] = Expectation(compute, tolerance, calling_place())

    @checked
    def bind(self, dim: Dim, size: int | Fraction) -> None:
        """State the size that the program's control data (routing, lengths) give to a symbol.

        ``check --data`` substitutes the size, and a run is compared with it. If only a run decides
        how many elements each of several streams has, their sum may still be stated:
        ``bind(a.type.count + b.type.count, 8)``. Lower bounds use the sum, and a run is compared
        with it.

        Args:
            dim: a symbol of a stream's shape, or a sum of the counts of several streams. A number
                has to be equal to ``size``.
            size: elements, at least 0; for a ragged symbol, the mean over its groups.

        Raises:
            ProgramError: ``dim`` is neither of these, belongs to another program, or has another
                size already.
        """
        bound = self.sizes if isinstance(dim, Symbol) else self.totals
        size_before = dim if isinstance(dim, int) else bound.get(dim, size)
        expected = None
        if size < 0:
            expected = "a size of at least 0"
        elif not isinstance(dim, int | Symbol) and not is_total(dim):
            expected = "a symbol, or a sum of streams' counts"
        elif isinstance(dim, Symbol) and not self._has(dim):
            expected = f"a symbol of program {self.name!r}"
        elif is_total(dim) and not isinstance(dim, Symbol) and not isinstance(size, int):
            expected = "a whole number of elements"
        elif isinstance(size, Fraction) and size.denominator > 1 and not is_ragged(dim):
            expected = "an integer: only sizes of many groups have a mean"
        elif size_before != size:
            expected = f"{size_before}, which it has already"
        if expected is not None:
            refuse(f"bind gives {dim_text(dim)} the size {size}: expected {expected}")
        if isinstance(dim, int):
            return
        if isinstance(dim, Symbol):
            self.sizes[dim] = size
        else:
            self.totals[dim] = int(size)

    @checked
    def tokens(self, count: Annotated[int, Bounds(1)], *, phase: TokenPhase = "decode") -> None:
        """State the number of tokens of a language model in a run.

        Reports then give tokens per second and per joule, if the hardware file has a clock and
        prices.

        Args:
            count: the tokens of all requests together.
            phase: ``decode``: the run makes these tokens, one for each request. ``prefill``: the
                run reads these tokens, and a request has its first token when the run ends.

        Raises:
            ProgramError: ``count`` is not an integer of at least 1, or a second call differs.
        """
        stated = TokenCount(count, phase)
        if self.token_count not in (None, stated):
            refuse(f"tokens states {stated}: expected {self.token_count}, as stated before")
        self.token_count = stated

    @checked
    def stands_for(self, runs: Annotated[int, Bounds(1)]) -> None:
        """State that a run is one of ``runs`` equal runs, such as the layers of a model in order.

        For token rates and the time to the first token, reports multiply seconds and joules by
        ``runs``. ``Cost.of`` multiplies its sums. All other figures are of one run.

        Args:
            runs: the number of runs, including this one.

        Raises:
            ProgramError: ``runs`` is not an integer of at least 1, or differs from an earlier call.
        """
        if self.stands_for_runs not in (1, runs):
            before = self.stands_for_runs
            refuse(
                f"stands_for states {counted(runs, 'run')}: expected {before:,}, as stated before"
            )
        self.stands_for_runs = runs

    def _has(self, symbol: Symbol) -> bool:
        """Whether the program made ``symbol``, or a stream has it in its shape."""
        return symbol in self.symbols.values() or any(
            symbol in free_symbols(dim)
            for node in self.nodes
            for stream in node.outputs
            for dim in stream.type.shape
        )

    @checked
    def deepen(self, option: str, depth: Annotated[int, Bounds(1)]) -> None:
        """State the depth of one channel.

        A depth that is given to a run takes precedence.

        Args:
            option: ``consumer.input``: the name of the reading operator, and the input's number.
            depth: in elements.

        Raises:
            ProgramError: ``depth`` is not an integer of at least 1.
        """
        self.depths[option] = depth
        self.deepened[option] = calling_place()

    @checked
    def allot(self, flops_per_cycle: Mapping[str, Annotated[int, Bounds(1)]]) -> None:
        """Replace the compute bandwidth of operators.

        Args:
            flops_per_cycle: of each operator's unit, by the operator's name.

        Raises:
            ProgramError: a name is not a compute operator's, or a bandwidth is below 1.
        """
        nodes = {node.name: node for node in self.nodes}
        for name, share in flops_per_cycle.items():
            node = nodes.get(name)
            if node is None or not isinstance(node.operator, ComputeOperator):
                refuse(f"allot gives bandwidth to {name!r}: expected a compute operator's name")
            node.operator = replace(node.operator, flops_per_cycle=share)

    @checked
    def put(self, sites: Mapping[str, tuple[int, int]]) -> None:
        """State the sites of the units on a mesh.

        A placement that is given to a run takes precedence. Without a mesh in the hardware the
        sites are not used.

        Args:
            sites: column and row of each unit, by the operator's name.

        Raises:
            ProgramError: a site is not a column and a row.
        """
        file, line = calling_place()
        units = {name: Site(*site) for name, site in sites.items()}
        self.placement = Placement(file, self.name, units, line)

    @property
    def expects(self) -> bool:
        """Whether an output or a stream has an expectation."""
        return bool(self.expected) or any(node.expected for node in self.nodes)

    def depth_of(self, option: str) -> int:
        """Return the depth of channel ``option``, in elements, for runs that state no depth."""
        return self.depths.get(option, self.channel_depth)

    def ask(self, what: str, question: Callable[[], Answer]) -> Answer:
        """Call a function of the user after the run, and return its result."""
        with users_code(what, self.place):
            return question()

    @override
    def add(
        self, operator: Operator, inputs: tuple[Stream, ...], place: Place
    ) -> tuple[Stream, ...]:
        for position, stream in enumerate(inputs):
            if not isinstance(stream, Stream):
                refuse_input(operator, position, stream)
        kind = type(operator).__name__
        # Without a stated name, an operator is named after its function.
        does = kind if operator.name else next(iter(applied_by(operator)), kind)
        name = self.names.take(kind, operator.name, place, does)
        node = Node(operator, name, place, inputs)
        pairs = self._pairs
        pairs.clear()
        types = result_of(operator, "infer", place, Wiring(self, node.name), *inputs)
        if pairs:
            self.undecided += [(node, left, right) for left, right in pairs]
        node.outputs = outputs_of(node, types)
        if node.is_laid_out and operator.joins_elements:
            check_orders(node.name, inputs)
        self.nodes.append(node)
        return node.outputs


TokenPhase: TypeAlias = Literal["decode", "prefill"]


@dataclass(frozen=True)
class TokenCount:
    """The tokens of all requests of a run, with a phase as in ``Program.tokens``."""

    count: int
    phase: TokenPhase

    @override
    def __str__(self) -> str:
        return f"{self.count:,} of {self.phase}"
