"""Frozen descriptions with checked values, and sections of TOML files.

The checks are worked out once for each class, since a program has thousands of operators.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import groupby
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NoReturn,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
)
from weakref import WeakKeyDictionary

from fabric.graph.arguments.checks import Check, Unfit, check_of, tuple_of
from fabric.messages.errors import ConfigurationError, FabricError, ProgramError
from fabric.messages.files import line_in
from fabric.messages.place import (
    Place,
    blamed_place,
    calling_place,
    is_ours,
    raising_place,
)
from fabric.messages.text import found_text, one_of

_ANNOTATED: Final = re.compile(r"Annotated\[([\w.]+), [^\]]*\]")
"""A type with bounds; ``help`` does not show the bounds."""


class Verbatim(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    __repr__ = str.__str__


def lacks(cls: type[Described]) -> list[str]:
    """Return the names of ``duties`` that ``cls`` does not define."""
    return [
        duty for duty in cls.duties if not any(_defines(cls, name) for name in duty.split(" or "))
    ]


def _defines(cls: type, name: str) -> bool:
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    return owner is not None and "duties" not in vars(owner)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Kind: TypeAlias = inspect._ParameterKind  # it has no public name
Checks: TypeAlias = tuple[tuple[str, Check], ...]

_BY_PLACE: Final = {Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD}
_BY_NAME: Final = {Kind.POSITIONAL_OR_KEYWORD, Kind.KEYWORD_ONLY}

_checks_of_class: Final[WeakKeyDictionary[type, Checks]] = WeakKeyDictionary()


class _Signature:
    """The signature of a class, with annotations as in its source, but without bounds."""

    def __get__(self, described: object, cls: type) -> inspect.Signature:
        if described is not None:
            raise AttributeError  # an operator has the signature of its __call__
        init = inspect.signature(cls.__init__)  # type: ignore[misc]
        return inspect.Signature([_unbounded(each) for each in [*init.parameters.values()][1:]])


def _unbounded(parameter: inspect.Parameter) -> inspect.Parameter:
    if not isinstance(parameter.annotation, str):
        return parameter
    return parameter.replace(annotation=Verbatim(_ANNOTATED.sub(r"\1", parameter.annotation)))


class Described:
    """A base of frozen dataclasses that checks values against the annotations of the fields.

    Attributes:
        duties: names that a subclass has to define; ``a or b`` if one of two is enough.
        refusal: the class of errors about wrong values.
    """

    duties: ClassVar[tuple[str, ...]] = ()
    refusal: ClassVar[type[FabricError]] = ProgramError

    _is_checked: ClassVar[bool]
    _binding: ClassVar[Binding | None]

    if not TYPE_CHECKING:
        __signature__ = _Signature()

        def __new__(cls, *args: object, **named: object) -> Self:
            """Refuse calls that do not fit the signature."""
            if cls._binding is None:
                cls._binding = Binding(inspect.signature(cls))
            cls._binding.check(cls.__name__, args, named)
            return object.__new__(cls)

        def __call__(self, *_args: object, **_named: object) -> NoReturn:
            _refuse_call(type(self))

        def __reduce__(self) -> tuple[object, ...]:
            """Copy without ``__init__``."""
            return object.__new__, (type(self),), self.__getstate__()

    def __init_subclass__(cls, **options: object) -> None:
        """Check ``cls`` when its first instance is made, and the arguments of all its calls."""
        super().__init_subclass__(**options)
        cls._is_checked, cls._binding = False, None
        call = vars(cls).get("__call__")
        if inspect.isfunction(call):
            cls.__call__ = _bound(call)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        """Check and convert the fields, and refuse contradictions between them."""
        cls = self.__class__
        if not cls._is_checked:
            _check_class(cls)
            cls._is_checked = True
        settle(self, self.refusal)
        for fault in self._faults():
            refuse(f"{cls.__name__}: {fault}", self.refusal)

    def _faults(self) -> Iterator[str]:
        """Yield sentences about fields that contradict each other; most begin with a field."""
        return iter(())


def settle(described: object, refusal: type[FabricError], who: str | None = None) -> None:
    """Check and convert the fields of a dataclass; raise a ``refusal`` for a wrong value."""
    cls = type(described)
    for name, check in field_checks(cls):
        value = getattr(described, name)
        settled = _settled(who or cls.__name__, name, value, check, refusal)
        if settled is not value:
            object.__setattr__(described, name, settled)


def field_checks(cls: type) -> Checks:
    checks = _checks_of_class.get(cls)
    if checks is None:
        checks = _checks_of_class[cls] = tuple(_field_checks(cls))
    return checks


def _field_checks(cls: type) -> Iterator[tuple[str, Check]]:
    for field in dataclasses.fields(cls):
        owner = next(base for base in cls.__mro__ if field.name in inspect.get_annotations(base))
        yield field.name, _evaluated(field.type, _namespace_of(owner))


def _namespace_of(cls: type) -> dict[str, object]:
    # If a program was executed again, sys.modules has another module of this name.
    for function in filter(inspect.isfunction, vars(cls).values()):
        names: dict[str, object] = inspect.unwrap(function).__globals__
        if names.get("__name__") == cls.__module__:
            return names
    return vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}


def _evaluated(annotation: object, names: dict[str, object]) -> Check:
    if annotation is inspect.Parameter.empty:
        return check_of(Any)
    try:
        if isinstance(annotation, str):
            annotation = eval(annotation, names)
        return check_of(annotation)
    except Exception:  # noqa: BLE001 - an unknown name may lead to any error
        return check_of(Any)


def _check_class(cls: type[Described]) -> None:
    missing = lacks(cls)
    if missing:
        wanted = ", ".join(cls.duties)
        refuse(f"{cls.__name__} does not define {', '.join(missing)}: expected {wanted}")
    if not is_ours(cls):
        _check_attributes(cls)
    if "__dataclass_fields__" in vars(cls) or "__init__" in vars(cls):
        return
    for name, annotation in inspect.get_annotations(cls).items():
        if name not in vars(cls) and "ClassVar" not in str(annotation):
            refuse(
                f"{cls.__name__} has a field {name} and is not a dataclass: "
                "expected @dataclass(frozen=True) above the class"
            )


def _check_attributes(cls: type[Described]) -> None:
    """Check attributes of a user's class against the annotations of the fabric's bases."""
    ours = [base for base in cls.__mro__ if is_ours(base)]
    names = {name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")}
    for name in sorted(names):
        value = inspect.getattr_static(cls, name)
        # The value of a property is unknown; a function instead of a value is a mistake.
        if inspect.isfunction(value) or not hasattr(value, "__get__"):
            for check in [check for base in ours for check in _attribute_check(base, name)]:
                _settled(cls.__name__, name, value, check)


def _attribute_check(owner: type, name: str) -> Iterator[Check]:
    attribute = vars(owner).get(name)
    if isinstance(attribute, property):
        function = attribute.fget
        assert function is not None
        yield _evaluated(inspect.get_annotations(function)["return"], function.__globals__)
    elif name in inspect.get_annotations(owner):
        yield _evaluated(inspect.get_annotations(owner)[name], _namespace_of(owner))


def refuse(
    message: str, kind: type[FabricError] = ProgramError, place: Place | None = None
) -> NoReturn:
    """Raise an error about the user's program.

    Raises:
        FabricError: of this ``kind``, at ``place``. The default place is the line of the user's
            program that is executing.
    """
    file, line = place or blamed_place() or (None, None)
    raise kind(message, file=file, line=line) from None


def refuse_key(message: str, file: str | None, *names: str) -> NoReturn:
    """Refuse a key of a TOML file at its line; ``names`` begin with the outermost table."""
    raise ConfigurationError(message, file=file, line=line_in(file, *names)) from None


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``function`` with its arguments checked against its annotations."""
    signature, who = inspect.signature(function), function.__qualname__.removesuffix(".__init__")
    names = inspect.unwrap(function).__globals__
    binding = Binding(signature)
    checks: dict[str, Check] = {}  # worked out at the first call

    def settled(name: str, value: object) -> Any:
        return _settled(who, name, value, checks[name])

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not checks:
            for name, parameter in signature.parameters.items():
                check = _evaluated(parameter.annotation, names)
                several = parameter.kind is Kind.VAR_POSITIONAL
                checks[name] = tuple_of([check], None) if several else check
        binding.check(who, args, kwargs)
        placed: list[Any] = list(map(settled, binding.by_place, args))
        if binding.rest is not None:
            placed += settled(binding.rest, args[len(binding.by_place) :])
        # Values of a ``**`` parameter are checked by the function.
        named: dict[str, Any] = {
            name: settled(name, value) if name in binding.by_name else value
            for name, value in kwargs.items()
        }
        return function(*placed, **named)

    return call


class Binding:
    """Compares the arguments of calls with a signature.

    Whether a call fits depends only on its number of positional arguments and on the names of its
    keyword arguments. These shapes of calls are remembered if they fit.

    Attributes:
        by_place, by_name: names of parameters that may be given by place, or by name.
        rest: the name of the ``*`` parameter; None without one.
    """

    def __init__(self, signature: inspect.Signature) -> None:
        parameters = signature.parameters.values()
        self._parameters: Final = [p for p in parameters if p.name != "self"]
        self.by_place: Final = [p.name for p in parameters if p.kind in _BY_PLACE]
        self.by_name: Final = dict.fromkeys(p.name for p in self._parameters if p.kind in _BY_NAME)
        self._required: Final = {
            p.name for p in parameters if p.default is p.empty and p.kind in _BY_PLACE | _BY_NAME
        }
        kinds = {p.kind: p.name for p in parameters}
        self.rest: Final = kinds.get(Kind.VAR_POSITIONAL)
        self._takes_any_name: Final = Kind.VAR_KEYWORD in kinds
        self._fitting: Final[set[tuple[object, ...]]] = set()

    def check(self, who: str, args: Sequence[object], named: Mapping[str, object]) -> None:
        """Refuse a call with values that are missing, unknown, too many or given twice."""
        shape = len(args), *named
        if shape in self._fitting:
            return
        placed = self.by_place[: len(args)]
        matched = self.by_name.keys() & named
        missing = self._required.difference(placed, matched)
        twice = matched.intersection(placed)
        too_many = len(args) > len(self.by_place) and self.rest is None
        unknown = len(matched) < len(named) and not self._takes_any_name
        if not (missing or twice or too_many or unknown):
            self._fitting.add(shape)
            return
        form = f"{who}{self._form()}"
        if unknown:
            name = next(given for given in named if given not in matched)
            names = list(self.by_name)
            wanted = one_of(names, name) if names else f"no names, as in {form}"
            refuse(f"{who}: {name} is given: expected {wanted}")
        if too_many:
            refuse(f"{who}: too many values are given: expected {form}")
        wrong = ", ".join(p.name for p in self._parameters if p.name in (twice or missing))
        fault = f"{wrong} is given twice" if twice else f"nothing is given for {wrong}"
        refuse(f"{who}: {fault}: expected {form}")

    def _form(self) -> inspect.Signature:
        """Return the signature without annotations, with dots for defaults."""
        return inspect.Signature(
            [
                p.replace(
                    annotation=p.empty,
                    default=p.empty if p.default is p.empty else Verbatim("..."),
                )
                for p in self._parameters
            ]
        )


def _bound(call: Callable[..., Result]) -> Callable[..., Result]:
    binding = Binding(inspect.signature(call))

    @wraps(call)
    def bound(*args: object, **named: object) -> Result:
        binding.check(f"{type(args[0]).__name__}(...)", args, named)
        return call(*args, **named)

    return bound


def _settled(
    who: str, name: str, value: object, check: Check, refusal: type[FabricError] = ProgramError
) -> Any:
    try:
        return check.settle(value)
    except Unfit:
        takers = _takers(type(value)) if isinstance(value, Described) else ()
        hint = check.hint(value) + "".join(f"; {name} takes one" for name in takers)
        refuse(f"{who}: {name} is {found_text(value)}: expected {check.text}{hint}", refusal)


def _takers(kind: type[Described]) -> list[str]:
    """Return the names of classes that have a field for an instance of ``kind``."""
    home = kind.__module__.partition(".")[0]
    offered = getattr(sys.modules.get(home), "__all__", None)
    names = {
        cls.__name__
        for cls in _descriptions()
        if cls.__module__.partition(".")[0] == home and cls.duties and not lacks(cls)
        if offered is None or cls.__name__ in offered
        for _, check in field_checks(cls)
        if check.kind is not None and issubclass(kind, check.kind)
    }
    return sorted(names)


def frozen_error(error: BaseException | None) -> ProgramError | None:
    """Return the error for a user's ``__init__`` that sets a field; None for other errors."""
    if not isinstance(error, dataclasses.FrozenInstanceError):
        return None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    owner = next(type(frame.f_locals["self"]) for frame in frames if "self" in frame.f_locals)
    file, line = raising_place(error) or calling_place()
    return ProgramError(
        f"{owner.__name__}: {error}: expected a field of a class with @dataclass(frozen=True), "
        "which its own __init__ does not set",
        file=file,
        line=line,
    )


def _refuse_call(cls: type[Described]) -> NoReturn:
    name = cls.__name__
    defaults = [parameter.default for parameter in inspect.signature(cls).parameters.values()]
    instance = f"{name}(...)" if inspect.Parameter.empty in defaults else f"{name}()"
    calls = " or ".join(f"{taker}({instance})(stream)" for taker in _takers(cls))
    refuse(
        f"{name} is a function, not an operator: write {calls}"
        if calls
        else f"{name} is not an operator and cannot be called: give it to an operator that takes it"
    )


def _descriptions() -> list[type[Described]]:
    classes: list[type[Described]] = [Described]
    for cls in classes:
        classes += cls.__subclasses__()
    return classes[:0:-1]


class Section(Described):
    """A section of a file as a frozen dataclass, with keys as fields. None leaves out a key."""

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    def _stated(self) -> dict[str, object]:
        """Return the keys and values as a file would state them; empty to omit the section."""
        values = {key: getattr(self, key) for key, _ in field_checks(type(self))}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
            if value is not None
        }


Read = TypeVar("Read", bound=Described)


def described_section(
    section: type[Read],
    name: str,
    table: Mapping[str, object],
    file: str | None,
    tags: Sequence[str] = (),
) -> Read:
    """Return the description in a section of a file; ``tags`` are keys without a field.

    The ``name`` begins with the names of the tables around the section: ``designs.small``.
    """
    checks, place = dict(field_checks(section)), name.split(".")
    values = {key: value for key, value in table.items() if key not in tags}
    for key, value in values.items():
        if key not in checks:
            expected = one_of([*tags, *checks], key)
            what = f"has no key {key} (found {key} = {found_text(value)}): expected {expected}"
            refuse_key(f"[{name}] {what}", file, *place, key)
    missing = [
        field.name
        for field in dataclasses.fields(section)  # type: ignore[arg-type]
        if field.default is field.default_factory is dataclasses.MISSING
        and field.name not in values
    ]
    if missing:
        by_type = groupby(missing, lambda key: checks[key].text)
        expected = "; ".join(f"{text} for {', '.join(keys)}" for text, keys in by_type)
        refuse_key(f"[{name}] has no {', '.join(missing)}: expected {expected}", file, *place)
    try:
        return section(**values)
    except ConfigurationError as error:
        # Most messages begin with a key. TOML has no None, so the message must not offer it.
        what = error.message.removeprefix(f"{section.__name__}: ").removesuffix(" or None")
        refuse_key(f"[{name}] {what}", file, *place, what.partition(" ")[0])
