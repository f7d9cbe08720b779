"""Frozen descriptions with checked values, and sections of TOML files.

The checks are worked out once for each class, since a program has thousands of operators.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import traceback
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, Final, NoReturn, ParamSpec, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from typing_extensions import override

from fabric.graph.arguments.checks import Check, Instance, Unfit, check_of, several
from fabric.messages.telling.errors import ConfigurationError, FabricError, ProgramError
from fabric.messages.telling.files import line_in
from fabric.messages.telling.place import blamed_place, calling_place, is_ours, raising_place
from fabric.messages.telling.wording import found_text, one_of

_ANNOTATED: Final = re.compile(r"Annotated\[([\w.]+), [^\]]*\]")
"""A type with bounds, which are told where a value is out of them."""


class Verbatim(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    __repr__ = str.__str__


class Helped(ABCMeta):
    """The metaclass of descriptions: ``help`` shows their parameters and texts."""

    @override
    def __dir__(cls) -> Iterable[str]:
        """Return what there is to use: of a finished description how it is called."""
        names = [name for name in super().__dir__() if not name.startswith("_")]
        if not _duties(cls) or lacks(cls):
            return names
        return ["__call__"] if _is_called(cls) else []

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature with annotations as written, without bounds."""
        parameters = list(inspect.signature(_initialiser(cls)).parameters.values())[1:]
        return inspect.Signature([_plain(each) for each in parameters])


def lacks(cls: type) -> list[str]:
    """Return what ``cls`` would have to define to be a whole description."""
    return [
        duty for duty in _duties(cls) if not any(_defines(cls, name) for name in duty.split(" or "))
    ]


def _duties(cls: type) -> tuple[str, ...]:
    return cast("tuple[str, ...]", getattr(cls, "duties", ()))


def _defines(cls: type, name: str) -> bool:
    owner = next((each for each in cls.__mro__ if name in vars(each)), None)
    return owner is not None and "duties" not in vars(owner)


def _is_called(cls: type) -> bool:
    return any("__call__" in vars(each) for each in cls.__mro__)


def _initialiser(cls: type) -> Callable[..., object]:
    owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
    made: Callable[..., object] = vars(owner)["__init__"]
    return made


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        return parameter
    return parameter.replace(annotation=Verbatim(_ANNOTATED.sub(r"\1", annotation)))


Parameters = ParamSpec("Parameters")


Result = TypeVar("Result")


_REFUSED: Final = re.compile(
    r"(?P<name>[\w.<>]+)\.(?P<method>__init__|__call__)\(\) (?P<what>(?:missing|takes|got) .*)"
)
"""What Python says of a call that does not fit the parameters."""


_UNCALLED: Final = re.compile(r"'(\w+)' object is not callable")


_UNKNOWN: Final = re.compile(r"unexpected keyword argument '(\w+)'")


_QUOTED: Final = re.compile(r"'(\w+)'")


Checks: TypeAlias = tuple[tuple[str, Check], ...]
"""The fields of a class with their checks."""


Kind: TypeAlias = inspect._ParameterKind  # it has no public name


_BY_PLACE: Final = {Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD}


_BY_NAME: Final = {Kind.POSITIONAL_OR_KEYWORD, Kind.KEYWORD_ONLY}


_known: Final[WeakKeyDictionary[type, Checks]] = WeakKeyDictionary()
"""The fields of classes with their checks."""


class Described(metaclass=Helped):
    """A base of frozen dataclasses that checks values against the annotations of the fields.

    Attributes:
        duties: what a subclass has to define; ``a or b`` where one of two will do.
        refusal: the error for a value that is refused.
    """

    duties: ClassVar[tuple[str, ...]] = ()
    refusal: ClassVar[type[FabricError]] = ProgramError

    _checks: ClassVar[Checks | None]

    def __init_subclass__(cls, **options: object) -> None:
        """Have ``cls`` looked at when its first instance is made."""
        super().__init_subclass__(**options)
        cls._checks = None

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        cls = self.__class__
        if cls._checks is None:
            _check_class(cls)
            cls._checks = field_checks(cls)
        _settle(self, cls._checks, self.refusal, cls.__name__)


def settle(described: object, refusal: type[FabricError], who: str | None = None) -> None:
    """Check and convert the fields of a dataclass; raise ``refusal`` for a wrong value."""
    cls = type(described)
    _settle(described, field_checks(cls), refusal, who or cls.__name__)


def _settle(described: object, checks: Checks, refusal: type[FabricError], who: str) -> None:
    for name, check in checks:
        value = getattr(described, name)
        try:
            settled = check.settle(value)
        except Unfit:
            refuse(_text(who, name, value, check), refusal)
        if settled is not value:
            object.__setattr__(described, name, settled)


def field_checks(cls: type) -> Checks:
    """Return the fields of ``cls`` with their checks, which are worked out once."""
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = tuple(_field_checks(cls))
    return found


def _field_checks(cls: type) -> Iterator[tuple[str, Check]]:
    for field in dataclasses.fields(cls):
        owner = next(each for each in cls.__mro__ if field.name in inspect.get_annotations(each))
        yield field.name, _evaluated(field.type, _words_of(owner))


def _words_of(cls: type) -> dict[str, object]:
    """Return the names that the annotations of ``cls`` are made of."""
    # A program that is executed again has a new module of the same name.
    functions = map(inspect.unwrap, filter(inspect.isfunction, vars(cls).values()))
    names = (each.__globals__ for each in functions)
    own = (each for each in names if each.get("__name__") == cls.__module__)
    module = sys.modules.get(cls.__module__)
    return next(own, {} if module is None else vars(module))


def _evaluated(annotation: object, names: dict[str, object]) -> Check:
    """Return the check for an annotation; none for one that is there for type checkers only."""
    if annotation is inspect.Parameter.empty:
        return check_of(Any)
    try:
        if isinstance(annotation, str):
            annotation = eval(annotation, names)
        return check_of(annotation)
    except Exception:  # noqa: BLE001 - whatever a name that is not there leads to
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
                f"{cls.__name__} has a field {name} and is no dataclass: "
                "expected @dataclass(frozen=True) above the class"
            )


def _check_attributes(cls: type[Described]) -> None:
    ours = [each for each in cls.__mro__ if is_ours(each)]
    names = {name for each in cls.__mro__ for name in vars(each)}
    for name in sorted(each for each in names if not each.startswith("_")):
        value = inspect.getattr_static(cls, name)
        # The value of a property is unknown; a function instead of a value is a mistake.
        if inspect.isfunction(value) or not hasattr(value, "__get__"):
            for check in [check for each in ours for check in _attribute_check(each, name)]:
                try:
                    check.settle(value)
                except Unfit:
                    refuse(_text(cls.__name__, name, value, check))


def _attribute_check(owner: type, name: str) -> Iterator[Check]:
    above = vars(owner).get(name)
    if isinstance(above, property):
        function = above.fget
        assert function is not None
        yield _evaluated(inspect.get_annotations(function)["return"], function.__globals__)
    elif name in inspect.get_annotations(owner):
        yield _evaluated(inspect.get_annotations(owner)[name], _words_of(owner))


def refuse(message: str, kind: type[FabricError] = ProgramError) -> NoReturn:
    """Refuse what the user's program does.

    Raises:
        FabricError: of that kind, at the line of the user's program that runs.
    """
    place = blamed_place()
    file, line = place or (None, None)
    raise kind(message, file=file, line=line) from None


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``function`` with its arguments checked against its annotations.

    As with descriptions, what is checked is worked out once.
    """
    signature = inspect.signature(function)
    names = inspect.unwrap(function).__globals__
    return checking(function, signature, lambda: argument_checks(signature, names))


def checking(
    function: Callable[Parameters, Result],
    signature: inspect.Signature,
    work_out: Callable[[], Iterable[tuple[str, Check]]],
) -> Callable[Parameters, Result]:
    """Return ``function`` with checked arguments; ``work_out`` is called once."""
    who = function.__qualname__.removesuffix(".__init__")
    checks: dict[str, Check] = {}
    fits = _fitting(signature)
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    places = [name for name, kind in kinds.items() if kind in _BY_PLACE]
    rest = next((name for name, kind in kinds.items() if kind is Kind.VAR_POSITIONAL), None)

    def settled(name: str, value: object) -> Any:
        try:
            return checks[name].settle(value)
        except Unfit:
            refuse(_text(who, name, value, checks[name]))

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not checks:
            checks.update(work_out())
        if not fits(len(args), kwargs):
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                refuse(_call_text(who, str(error), signature))
        given: list[Any] = list(map(settled, places, args))
        if rest is not None:
            given += settled(rest, args[len(places) :])
        named: dict[str, Any] = {
            name: settled(name, value) if kinds.get(name) in _BY_NAME else value
            for name, value in kwargs.items()
        }
        return function(*given, **named)

    return call


def _fitting(signature: inspect.Signature) -> Callable[[int, Mapping[str, object]], bool]:
    """Return a faster test than ``Signature.bind`` for the number and names of arguments."""
    parameters = signature.parameters.values()
    kinds = {each.kind for each in parameters}
    places = [each.name for each in parameters if each.kind in _BY_PLACE]
    known = {each.name for each in parameters if each.kind in _BY_NAME}
    needed = {
        each.name
        for each in parameters
        if each.default is each.empty and each.kind in _BY_PLACE | _BY_NAME
    }

    def fits(count: int, named: Mapping[str, object]) -> bool:
        given = places[:count]
        return (
            (count <= len(places) or Kind.VAR_POSITIONAL in kinds)
            and needed.issubset([*given, *known.intersection(named)])
            and (known.issuperset(named) or Kind.VAR_KEYWORD in kinds)
            and not any(name in named and name in known for name in given)
        )

    return fits


def argument_checks(
    signature: inspect.Signature, names: dict[str, object]
) -> Iterator[tuple[str, Check]]:
    """Yield the parameters with their checks; annotations are words of ``names``."""
    for name, parameter in signature.parameters.items():
        check = _evaluated(parameter.annotation, names)
        if parameter.kind is parameter.VAR_POSITIONAL:
            check = several(check)
        elif parameter.kind is parameter.VAR_KEYWORD:
            check = check_of(Any)  # who takes any name looks at the values, too
        yield name, check


def _text(who: str, name: str, value: object, check: Check) -> str:
    takers = ""
    if isinstance(value, Described):
        takers = "".join(f"; {name} takes one" for name in _takers(type(value)))
    return f"{who}: {name} is {found_text(value)}: expected {check.text}{check.hint(value)}{takers}"


def _takers(kind: type[Described]) -> list[str]:
    """Return the descriptions of the same package that have a field for a ``kind``."""
    home = kind.__module__.partition(".")[0]
    offered = getattr(sys.modules.get(home), "__all__", None)
    found = {
        cls.__name__
        for cls in _descriptions()
        if cls.__module__.partition(".")[0] == home and cls.duties and not lacks(cls)
        if offered is None or cls.__name__ in offered
        for _, check in field_checks(cls)
        if isinstance(check, Instance) and issubclass(kind, check.kind)
    }
    return sorted(found)


def called_wrongly(error: BaseException) -> ProgramError | None:
    """Return the error for a description that Python could not call, None for other errors."""
    if isinstance(error, dataclasses.FrozenInstanceError):
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        owner = next(type(each.f_locals["self"]) for each in frames if "self" in each.f_locals)
        file, line = raising_place(error) or calling_place()
        return ProgramError(
            f"{owner.__name__}: {error}: expected a field of a class with @dataclass(frozen=True), "
            "which its own __init__ does not set",
            file=file,
            line=line,
        )
    if not isinstance(error, TypeError):
        return None
    uncalled = _UNCALLED.fullmatch(str(error))
    if uncalled is not None:
        return _no_operator(uncalled[1], error)
    refused = _REFUSED.match(str(error))
    if refused is None:
        return None
    name, method = refused["name"].rpartition("<locals>.")[2], refused["method"]
    cls = next((each for each in _descriptions() if each.__name__ == name), None)
    place = raising_place(error)
    if cls is None or place is None:
        return None
    signature = inspect.signature(getattr(cls, method))
    who = name if method == "__init__" else f"{name}(...)"
    file, line = place
    return ProgramError(_call_text(who, refused["what"], signature), file=file, line=line)


def _no_operator(name: str, error: TypeError) -> ProgramError | None:
    """Return the error for a call of a description that is not an operator."""
    cls = next((each for each in _descriptions() if each.__name__ == name), None)
    place = raising_place(error)
    if cls is None or place is None:
        return None
    file, line = place
    defaults = [each.default for each in inspect.signature(cls).parameters.values()]
    made = f"{name}(...)" if inspect.Parameter.empty in defaults else f"{name}()"
    calls = " or ".join(f"{taker}({made})(stream)" for taker in _takers(cls))
    what = (
        f"{name} is a function, not an operator: write {calls}"
        if calls
        else f"{name} is not an operator and cannot be called: give it to an operator that takes it"
    )
    return ProgramError(what, file=file, line=line)


def _descriptions() -> list[type[Described]]:
    found: list[type[Described]] = [Described]
    for cls in found:
        found += cls.__subclasses__()
    return found[:0:-1]


def _call_text(who: str, what: str, signature: inspect.Signature) -> str:
    parameters = [
        each.replace(
            annotation=each.empty,
            default=each.empty if each.default is each.empty else Verbatim("..."),
        )
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    form = f"{who}{inspect.Signature(parameters)}"
    unknown = _UNKNOWN.search(what)
    if unknown is not None:
        names = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
        wanted = one_of(names, unknown[1]) if names else f"no names, as in {form}"
        return f"{who}: {unknown[1]} is given: expected {wanted}"
    missing = ", ".join(_QUOTED.findall(what))
    if "missing" in what:
        return f"{who}: nothing is given for {missing}: expected {form}"
    return f"{who}: too many values are given: expected {form}"


class Section(Described):
    """A frozen dataclass whose fields are the keys of a section; a key with None is left out."""

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    def _stated(self) -> dict[str, object]:
        """Return the keys with their values, as a file would state them; none: without section."""
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
    """Return the description that a section of a file makes.

    Args:
        section: its class.
        name: with the names of the tables around it: ``designs.small``.
        table: its keys and values.
        file: the path, for messages.
        tags: keys that are not fields, and have been read already.
    """
    known, place = dict(field_checks(section)), name.split(".")
    values = {key: value for key, value in table.items() if key not in tags}
    for key, value in values.items():
        if key not in known:
            raise ConfigurationError(
                f"[{name}] has no key {key} (found {key} = {found_text(value)}): "
                f"expected {one_of([*tags, *known], key)}",
                file=file,
                line=line_in(file, *place, key),
            )
        try:
            known[key].settle(value)
        except Unfit:
            # What may be left open is left out: TOML has no None.
            expected = known[key].text.removesuffix(" or None")
            raise ConfigurationError(
                f"[{name}] {key} is {found_text(value)}: expected {expected}",
                file=file,
                line=line_in(file, *place, key),
            ) from None
    missing = [
        each.name
        for each in dataclasses.fields(section)  # type: ignore[arg-type]
        if each.default is each.default_factory is dataclasses.MISSING and each.name not in values
    ]
    if missing:
        raise ConfigurationError(
            f"[{name}] has no {missing[0]}: expected {known[missing[0]].text}",
            file=file,
            line=line_in(file, *place),
        )
    try:
        return section(**values)
    except ConfigurationError as error:
        # Most sentences about contradictory keys begin with a key.
        what = error.message.removeprefix(f"{section.__name__}: ")
        line = line_in(file, *place, what.partition(" ")[0])
        raise ConfigurationError(f"[{name}] {what}", file=file, line=line) from None
