"""Operators as frozen descriptions, and nodes of programs (arXiv 2511.07776v2, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described, field_checks, refuse
from fabric.graph.hardware.description import UnitKind
from fabric.graph.layouts.layout import Layout, Orders, common_order
from fabric.graph.values.dims import Dim, is_polynomial_in, is_ragged, symbol
from fabric.graph.values.expression import Symbol
from fabric.graph.values.stream_type import StreamType, Types, ValueType, with_dims
from fabric.graph.wiring.costs import Costs
from fabric.graph.wiring.names import Names, unused
from fabric.graph.wiring.stream import Producer, Stream, unfit
from fabric.messages.place import Place, calling_place, defining_place, is_ours
from fabric.messages.text import counted, found_text

if TYPE_CHECKING:
    from fractions import Fraction

    from fabric.graph.hardware.description import Hardware
    from fabric.graph.wiring.costs import OffChipTensor, Rates, Work
    from fabric.timing.engine.ports import Ports


class Wired:
    """The part of a program that its operators use.

    Attributes:
        sizes: sizes of symbols from ``bind``.
        listed_sizes: sizes of symbols that follow from lists given to operators.
        absorbed: the expression that a symbol replaces. Both have the same sum over a stream.
        mixtures: for the symbol of the size of elements from several streams, the counts and sizes
            of the elements of each stream.
        renewed: for the symbol of a size in selected or repeated groups, the size in all groups.
    """

    def __init__(self, name: str, hardware: Hardware) -> None:
        self.name: Final = name
        self.hardware: Final = hardware
        self.names: Final = Names()
        self.sizes: dict[Symbol, int | Fraction] = {}
        self.listed_sizes: dict[Symbol, int | Fraction] = {}
        self.absorbed: dict[Symbol, Dim] = {}
        self.renewed: dict[Symbol, Dim] = {}
        self.mixtures: dict[Symbol, tuple[tuple[Dim, Dim], ...]] = {}
        self.symbols: dict[str, Symbol] = {}
        self._shared: dict[tuple[object, ...], Symbol] = {}

    def add(
        self, operator: Operator, inputs: tuple[Stream, ...], place: Place
    ) -> tuple[Stream, ...]:
        raise NotImplementedError

    def symbol(
        self,
        name: str,
        *,
        ragged: bool = False,
        shared_by: tuple[object, ...] = (),
        size: int | Fraction | None = None,
    ) -> Symbol:
        """Return a symbol; see ``Wiring.symbol``."""
        if shared_by and shared_by in self._shared:
            return self._shared[shared_by]
        unique = unused(name, self.symbols.__contains__)
        result = self.symbols[unique] = symbol(unique, ragged=ragged)
        if shared_by:
            self._shared[shared_by] = result
        if size is not None:
            self.listed_sizes[result] = size
        return result


current_program: ContextVar[Wired | None] = ContextVar("program", default=None)
"""The program of the ``with`` block that is executing."""


@dataclass(frozen=True, kw_only=True)
class Operator(Described):
    """The description of an operator: parameters, types, costs and behaviour.

    Subclasses are frozen dataclasses that define ``infer``, ``run`` and ``__call__``.
    The parameters of ``__call__`` name the input streams, and it returns ``self.wire(...)``. Each
    field is checked against its annotation when an operator is made; ``Annotated[int, Bounds(1)]``
    adds bounds.

    An operator of yours may await only its channels, in a single task. Unless the class is
    ``conducted``, its ``run`` is checked, and a violation is an error that names the line. The
    rules are:

    * an element is a tuple of a value of the output's type and the level of its stop, from 0 to the
      rank. In an empty tensor the value is ``Empty(dimension)``. Before such a bare stop, all
      dimensions inside of ``dimension`` are closed. The last element closes all dimensions;
    * tiles have data in functional mode and no data in timing mode (integer tiles may have data).
      A tile is not changed after it was sent or received;
    * ``send``, ``send_at``, ``send_bare``, ``reserve``, ``receive`` and ``peek`` are awaited
      immediately, in the operator's own task. ``put`` follows ``reserve``, ``take`` follows
      ``peek``;
    * the clock and the counters of its unit change by ``charge`` and by waiting, and are not set.
      Charging forever without an element in between is a livelock.

    ``receive`` and ``peek`` return None at the end of an input, also if they are called again.

    A class that states ``conducted = True`` promises to keep these rules. Its operators are not
    checked, and run as fast as the fabric's own. It also promises that ``run`` awaits only its
    channels, its ports and their clock, lets their exceptions pass, and shares no value that it
    changes later. If a class breaks the promise, the result is wrong cycles, an error in another
    operator, or a run without end. A subclass inherits the statement if it overrides only
    ``infer``, ``costs``, ``work``, ``__call__``, ``__init__``, ``__post_init__``, or defaults of
    its fields. A subclass that overrides anything else is checked, unless it repeats the statement.

    A conducted class may also state ``turns = True``. In timing mode its operators then run in
    compiled code, many times faster. ``run`` is called only to record its operations in each
    state, and must have no other effects. It calls ``ports.turn(...)`` after each element or group
    with its whole state: numbers, values and tuples. Its next operations and errors may depend only
    on this state and on the elements that it receives. A loop with a number of equal rounds
    iterates over ``ports.times(count)``. ``carries_numbers = True`` states that ``run`` passes on
    numbers in tiles without reading them, except addresses (``ports.number``). Subclasses inherit
    these statements like ``conducted``. If an operator cannot be recorded, the run begins again as
    tasks.

    Attributes:
        name: its name in reports. None stands for the name of its function or class with a number,
            such as ``exp_1``.
    """

    family: ClassVar[str] = "Beyond the paper's tables"

    duties: ClassVar[tuple[str, ...]] = ("infer", "run", "__call__")

    conducted: ClassVar[bool] = False
    """Whether the class promises that ``run`` keeps the rules, so that it is not checked."""

    turns: ClassVar[bool] = False
    """Whether ``run`` depends only on its last ``turn`` and its inputs, so that it is recorded."""

    carries_numbers: ClassVar[bool] = False
    """Whether an operator with ``turns`` passes on numbers in tiles without reading them."""

    effects: ClassVar[bool] = False
    """Whether ``run`` has other effects, such as a written file. Then all units are tasks."""

    kind: ClassVar[UnitKind] = "routing"
    off_chip: ClassVar[Literal["read", "write"] | None] = None
    """Whether the operator reads or writes off-chip memory."""
    spills: ClassVar[Literal["read", "write"] | None] = None
    """Whether it spills: it writes tiles without room on chip to the HBM, or reads them back."""
    updates: ClassVar[tuple[int, ...]] = ()
    """Inputs of a memory unit that change its tiles: each input tile causes a read and a write."""

    secondary_outputs: ClassVar[tuple[int, ...]] = ()
    """Outputs that may stay unread and are then not produced."""

    keeps_order: ClassVar[bool] = False
    """Whether each output has the tiles of the inputs in their common order."""

    no_order: ClassVar[str] = "it does not say which tiles it makes"
    """Why its outputs have no layouts, unless ``layouts`` returns some."""

    is_users: ClassVar[bool]
    """Whether ``infer`` is a user's, so that its results are checked."""

    name: str | None = None

    @override
    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        cls.is_users = defining_place(cls.infer) is not None

    def infer(self, wiring: Wiring, *inputs: Any, **_: Any) -> Types:
        """Return the types of the outputs.

        Subclasses name the input streams as ``__call__`` does, which the annotation Any allows.

        Raises:
            ShapeError: the inputs do not fit. The message is a whole sentence; the program adds
                the line.
        """
        raise NotImplementedError

    def costs(self, inputs: Types, outputs: Types) -> Costs:  # noqa: ARG002 - a default
        """Return the costs of the operator for streams with the given types; by default none."""
        return Costs()

    def off_chip_tensor(self, inputs: Types, outputs: Types) -> OffChipTensor | None:  # noqa: ARG002 - a default
        """Return the off-chip tensor that the operator reads or writes, if ``off_chip`` is set.

        With None, the operator's bursts get a separate range of addresses that is large enough.
        """
        return None

    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work | None:  # noqa: ARG002 - a default
        """Return the least work of the operator in any run that completes.

        The lower bounds of a program follow from it. None means that the work and the number of
        output elements are unknown. Overriding ``infer`` or ``run`` requires overriding ``work``.
        """
        return None

    @property
    def joins_elements(self) -> bool:
        """Whether it combines elements of its inputs that have the same place in a tensor."""
        return False

    def layouts(self, inputs: Orders, types: Types, outputs: Types) -> Orders:  # noqa: ARG002 - a default
        """Return the layout of each output, or a text with the reason why it is unknown.

        Args:
            inputs: layouts of the inputs, or reasons; a reason may be passed on.
            types: types of the inputs.
            outputs: types of the outputs.
        """
        order = common_order(inputs) if self.keeps_order else self.no_order
        return (order,) * len(outputs)

    async def run(self, ports: Ports) -> None:
        """Read the inputs and write the outputs until the inputs end; await nothing else.

        In timing mode it may be called again from the start, so its state is in local variables.
        An operator without inputs is called once for each input of the program. ``ports.now`` and
        ``send_at`` count from the end of the previous call.
        """
        raise NotImplementedError

    def wire(self, *inputs: Stream) -> tuple[Stream, ...]:
        """Add this operator to the program being wired and return its outputs."""
        program = current_program.get()
        if program is None:
            refuse(
                f"{type(self).__name__} is called outside a program: expected `with Program(...)`"
            )
        return program.add(self, inputs, calling_place())


@dataclass(frozen=True, kw_only=True)
class ComputeOperator(Operator):
    """An operator that runs on a compute unit.

    Attributes:
        flops_per_cycle: compute bandwidth; None for the program's.
    """

    kind: ClassVar[UnitKind] = "compute"

    flops_per_cycle: Annotated[int, Bounds(1)] | None = None

    @property
    def has_arithmetic(self) -> bool:
        """Whether it needs compute bandwidth, unlike retiling and bookkeeping."""
        return True


def applied_by(operator: Operator) -> list[str]:
    """Return the classes of the functions that an operator applies."""
    values = [getattr(operator, name) for name, _ in field_checks(type(operator))]
    # Tensors are dataclasses, too, but have a shape.
    return [
        type(value).__name__
        for value in values
        if hasattr(value, "__dataclass_fields__") and not hasattr(value, "shape")
    ]


class Node(Producer):
    """An operator in a program.

    Attributes:
        index: the number in the plan, which breaks ties; -1 until a plan is made.
    """

    def __init__(
        self, operator: Operator, name: str, place: Place, inputs: tuple[Stream, ...]
    ) -> None:
        super().__init__(name, inputs)
        self.operator: Operator = operator
        self.place: Final = place
        self.outputs: tuple[Stream, ...] = ()
        self.index = -1
        self._laid: Orders | None = None

    @property
    @override
    def laid(self) -> Orders:
        waiting = [self]
        while waiting:
            node = waiting[-1]
            if node._laid is not None:
                waiting.pop()
                continue
            # No recursion, since a chain of operators may be deeper than Python's stack.
            missing = [
                stream.node
                for stream in node.inputs
                if isinstance(stream.node, Node) and stream.node._laid is None
            ]
            waiting += missing
            if not missing:
                node._laid = node._compute_layouts()
        assert self._laid is not None
        return self._laid

    def _compute_layouts(self) -> Orders:
        layouts = self.operator.layouts(
            tuple(stream.laid for stream in self.inputs), self.input_types, self.output_types
        )
        if not is_ours(type(self.operator)):
            self._check_layouts(layouts)
        return tuple(map(self._fitting_layout, layouts, self.output_types))

    def _check_layouts(self, value: object) -> None:
        count = len(self.outputs)
        items = list(value) if isinstance(value, tuple | list) else []
        if len(items) != count or not all(isinstance(item, Layout | str) for item in items):
            refuse(
                f"{type(self.operator).__name__}: layouts() returned {found_text(value)}: expected "
                f"a tuple of {counted(count, 'layout')}, or of reasons in words",
                place=defining_place(type(self.operator).layouts) or self.place,
            )

    def _fitting_layout(self, layout: Layout | str, stream: StreamType) -> Layout | str:
        if isinstance(layout, str):
            passed_on = any(layout == stream.laid for stream in self.inputs)
            return layout if passed_on else f"{self.name}: {layout}"
        misfit = unfit(layout, stream)
        return layout if misfit is None else f"{self.name}: {misfit}"

    @property
    def input_types(self) -> Types:
        return tuple(stream.type for stream in self.inputs)

    @property
    def output_types(self) -> Types:
        return tuple(stream.type for stream in self.outputs)


class Wiring(NamedTuple):
    """The part of a program that ``infer`` uses.

    Attributes:
        node_name: the name of the node being wired.
        is_inner: for the split of a FlatMap, whether its parts have an outer dimension other than
            1. None for other operators.
    """

    program: Wired
    node_name: str
    is_inner: bool | None = None

    @property
    def hardware(self) -> Hardware:
        """The hardware, which has all values that the program leaves open."""
        return self.program.hardware

    def symbol(
        self,
        name: str,
        *,
        ragged: bool | None = None,
        shared_by: tuple[object, ...] = (),
        size: int | Fraction | None = None,
    ) -> Dim:
        """Return a symbol for a dimension that depends on data.

        Args:
            name: readable, such as ``D_route[3]``; a number is added if it is in use.
            ragged: the size differs between outer elements. None: only the parts that a FlatMap
                makes inside of other dimensions are ragged.
            shared_by: a key. Operators that state the same key get the same symbol.
            size: the size, if it follows from a list that the operator was given; the mean for a
                ragged symbol. ``check --data`` uses it unless ``Program.bind`` states a size.
        """
        ragged = bool(self.is_inner) if ragged is None else ragged
        return self.program.symbol(name, ragged=ragged, shared_by=shared_by, size=size)

    def store(self, output: str, tensor: object = None, tiles: object = None) -> None:
        """Register ``output`` as stored by the operator; call it after all other checks.

        Args:
            output: the name of the output.
            tensor: the written object. Operators that state the same object and ``tiles`` share
                the output. None: the output is not shared.
            tiles: the type of the written tiles.

        Raises:
            ProgramError: the name is empty, or another operator stores something else under it.
        """
        self.program.names.store(self.node_name, output, tensor, tiles)

    def mixture(self, label: str, counts: Sequence[Dim], sizes: Sequence[Dim]) -> Dim:
        """Return the size of elements that come from several streams, in any order.

        Args:
            label: the measured size, such as ``rows``.
            counts: the number of elements of each stream.
            sizes: the size of each stream's elements.

        Returns:
            The common size, or a ragged symbol if sizes differ. Traffic and FLOPs count the mean of
            the sizes, on-chip memory the largest size.
        """
        if all(size == sizes[0] for size in sizes):
            return sizes[0]
        result = self.program.symbol(f"D_{self.node_name}_{label}", ragged=True)
        self.program.mixtures[result] = tuple(zip(counts, sizes, strict=True))
        return result

    def renewed(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return dimensions for a stream that selects or repeats groups with dimensions ``dims``.

        Ragged dimensions get new symbols, since the mean over selected groups may differ.
        """
        return tuple(map(self._renewed, dims))

    def renewed_value(self, value: ValueType) -> ValueType:
        """Return the type of elements that are selected or repeated from a stream of ``value``.

        Ragged sizes get new symbols, since the mean over selected elements may differ.
        """
        return with_dims(value, self._renewed)

    def _renewed(self, dim: Dim) -> Dim:
        if not is_ragged(dim):
            return dim
        result = self.program.symbol(f"D_{self.node_name}", ragged=True)
        self.program.renewed[result] = dim
        return result

    def absorb(self, dim: Dim, *, ragged: bool | None = None) -> Dim:
        """Return ``dim``, or a new symbol in its place if it contains a ragged symbol.

        Args:
            dim: a dimension of a stream, computed from other dimensions.
            ragged: whether the new symbol is ragged. A symbol of an outermost dimension is not.
                None: it is ragged, except for parts that a FlatMap makes of a stream's only group.
        """
        ragged = self.is_inner is not False if ragged is None else ragged
        if not is_ragged(dim) or (ragged and isinstance(dim, Symbol)):
            return dim
        result = self.program.symbol(f"D_{self.node_name}", ragged=ragged)
        assert not isinstance(dim, int)
        # A sum of products keeps its total if each group has the mean size.
        if is_polynomial_in(dim, frozenset(filter(is_ragged, dim.free_symbols))):
            self.program.absorbed[result] = dim
        return result


def is_conducted(kind: type[Operator]) -> bool:
    """Whether operators of class ``kind`` are trusted to keep the rules of ``Operator``."""
    return bool(vars(behaving_as(kind)).get("conducted", False))


def behaving_as(kind: type[Operator]) -> type[Operator]:
    """Return the nearest base that states ``conducted``.

    If an attribute that ``run`` may use is overridden, return ``kind`` instead.
    """
    bases = (base for base in kind.__mro__ if issubclass(base, Operator))
    base = next(base for base in bases if "conducted" in vars(base))
    above = kind.__mro__[: kind.__mro__.index(base)]
    changed = {name: value for cls in reversed(above) for name, value in vars(cls).items()}
    defaults = {field.name for field in fields(base)}
    for name in changed.keys() & set(type.__dir__(base)) - _NOT_USED_BY_RUN:
        # Defaults of fields may differ, but a property in place of a field is code.
        if name not in defaults or hasattr(type(changed[name]), "__get__"):
            return kind
    return base


@dataclass(frozen=True)
class _Plain(Described):
    """A class that has only the attributes that Python and ``dataclass`` add to descriptions."""

    field: int = 0


_NOT_USED_BY_RUN: Final = {
    *("infer", "costs", "work", "duties", "refusal", "is_users", "effects", "family"),
    *("__post_init__", "__call__", *vars(_Plain)),
}
