"""SystemVerilog of expressions in Amaranth.

An expression is written modulo 2 ** n, for the n bits that its reader needs. So every width is
explicit, and the rules of Verilog neither cut off nor extend a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_

# Any: amaranth has no types.
from typing import Any, Final

from amaranth.hdl import ClockSignal, Const, ResetSignal, Signal
from amaranth.hdl._ast import Concat, Operator, Part, Slice, SwitchValue

from fabric import ProgramError

_ATOM: Final = re.compile(r"~?[\w.'$]+(\[[^\[\]]*\])*|\d+'\([^()]*\)|\{[^{}]*\}")

_COMPARISONS: Final = ("<", "<=", "==", "!=", ">", ">=")


class Expressions:
    """Writes the expressions of one module.

    ``bits`` returns the name of bits ``start`` to ``stop`` of a signal. It returns None for a
    signal without a driver, which keeps its initial value. ``held`` takes the text of an expression
    and its number of bits, and returns the name of a wire that holds it. ``refused`` returns the
    error for an expression that cannot be written.
    """

    def __init__(
        self,
        bits: Callable[[Any, int, int], str | None],
        held: Callable[[str, int], str],
        refused: Callable[[str], ProgramError],
    ) -> None:
        self._bits: Final = bits
        self._held: Final = held
        self._refused: Final = refused
        self._writers: Final[Mapping[type, Callable[[Any, int], str]]] = {
            Const: lambda value, width: constant(value.value, width),
            Signal: self._signal,
            ClockSignal: lambda *_: "clk",
            ResetSignal: lambda *_: "rst",
            Slice: self._slice,
            Concat: lambda value, width: self._fitted(self._concat(value.parts), len(value), width),
            Part: self._part,
            SwitchValue: self._chosen,
            Operator: self._operation,
        }

    def text(self, value: Any, width: int | None = None) -> str:
        """Return ``value`` modulo 2 ** ``width``, by default in its own width."""
        writer = self._writers.get(type(value))
        if writer is None:
            raise self._refused(type(value).__name__)
        return writer(value, len(value) if width is None else width)

    def matches(self, test: Any, patterns: Sequence[str]) -> str:
        """Return whether ``test`` matches a pattern of 0, 1 and -, with the highest bit first."""
        texts = [self._matches(test, pattern) for pattern in patterns]
        return texts[0] if len(texts) == 1 else " | ".join(f"({text})" for text in texts)

    def _matches(self, test: Any, pattern: str) -> str:
        bits = [(at, bit) for at, bit in enumerate(reversed(pattern)) if bit != "-"]
        if len(bits) == len(pattern) > 1:
            return f"{self._operand(test)} == {constant(int(pattern, 2), len(test))}"
        equal = [test[at] if bit == "1" else ~test[at] for at, bit in bits]
        return self.text(reduce(and_, equal, Const(1)))

    def _fitted(self, text: str, own: int, width: int) -> str:
        """Return an expression of ``own`` bits, extended by zeros or cut to ``width`` bits."""
        if own <= width:
            return text if own == width else f"{{{constant(0, width - own)}, {text}}}"
        # Tools disagree on the size of a cast sum or shift, but agree on the bits of a wire.
        name = self._held(text, own)
        return f"{name}[{width - 1}:0]" if width > 1 else f"{name}[0]"

    def _operand(self, value: Any, width: int | None = None) -> str:
        text = self.text(value, width)
        return text if _ATOM.fullmatch(text) else f"({text})"

    def _signal(self, signal: Any, width: int) -> str:
        own = len(signal)
        name = self._bits(signal, 0, min(width, own))
        if name is None:
            return constant(signal.init, width)
        if width <= own:
            return name
        return f"{width}'($signed({name}))" if signal.shape().signed else f"{width}'({name})"

    def _slice(self, value: Any, width: int) -> str:  # noqa: PLR0911 - one case each
        inner, start, stop = value.value, value.start, min(value.stop, value.start + width)
        own = stop - start
        match inner:
            case Slice():
                return self.text(inner.value[start + inner.start : stop + inner.start], width)
            case Const():
                return constant((inner.value >> start) % (1 << own), width)
            case Signal() if (name := self._bits(inner, start, stop)) is not None:
                return name if width == own else f"{width}'({name})"
            case Concat():
                return self._fitted(self._concat(_cut(inner.parts, start, stop)), own, width)
            case Operator(operator="u" | "s"):
                return self.text(inner.operands[0][start:stop], width)
            case Operator(operator="&" | "|" | "^" | "~") if min(map(len, inner.operands)) >= stop:
                cut = [each[start:stop] for each in inner.operands]
                return self._operation(Operator(inner.operator, cut), width)
        text = self.text(inner, stop)
        if start:
            text = self._fitted(f"{self._operand(inner, stop)} >> {start}", stop, own)
        return self._fitted(text, own, width)

    def _concat(self, parts: Any) -> str:
        texts = [self.text(part) for part in reversed(parts) if len(part)]
        return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"

    def _part(self, value: Any, width: int) -> str:
        offset, stride = value.offset, value.stride
        wide = len(offset) + (stride - 1).bit_length()
        by = self._operand(offset, wide)
        if stride > 1:
            by = f"({by} * {constant(stride, wide)})"
        own = max(len(value.value), value.width)
        moved = f"{self._operand(value.value, own)} >> {by}"
        return self._fitted(self._fitted(moved, own, value.width), value.width, width)

    def _chosen(self, value: Any, width: int) -> str:
        *cases, (patterns, last) = value.cases
        if patterns is None and len(cases) == 1 and set(cases[0][0][0]) == {"0"}:
            # A Mux lists its value for 0 first.
            test = f"{'' if len(value.test) == 1 else '|'}{self._unary(value.test)}"
            yes, no = (self._branch(each, width) for each in (last, cases[0][1]))
            if test == "(1'b0)" or yes == no:
                return no
            return f"{test} ? {yes} : {no}"
        if patterns is not None:
            cases, last = value.cases, Const(0, width)
        text = self._branch(last, width)
        for each, chosen in reversed(cases):
            text = f"{self.matches(value.test, each)} ? {self._branch(chosen, width)} : {text}"
        return text

    def _branch(self, value: Any, width: int) -> str:
        text = self.text(value, width)
        return f"({text})" if " ? " in text else text

    def _unary(self, value: Any, width: int | None = None) -> str:
        text = self._operand(value, width)
        # Yosys reads ~1'(x) as a cast to ~1 bits.
        return f"({text})" if text[0].isdigit() or text[0] == "~" else text

    def _operation(self, value: Any, width: int) -> str:
        sign, (first, *others) = value.operator, value.operands
        if not others:
            return self._unary_operation(value, width)
        if sign in _COMPARISONS:
            return self._fitted(self._comparison(sign, first, others[0]), 1, width)
        if sign in ("&", "|"):
            return self._chain(value, width)
        if sign in ("<<", ">>", "//", "%"):
            return self._uneven(value, width)
        own = len(value)
        # Synthesis cannot know that the upper bits of a wider product are 0.
        is_narrow = sign == "*" and width > own and not value.shape().signed
        wide = own if is_narrow else width
        sides = [self._operand(each, wide) for each in value.operands]
        if sign in ("+", "-") and sides[1] == constant(0, wide):
            return self._fitted(self.text(first, wide), wide, width)
        return self._fitted(f" {sign} ".join(sides), wide, width)

    def _unary_operation(self, value: Any, width: int) -> str:
        sign, first, own = value.operator, value.operands[0], len(value)
        is_signed = value.shape().signed
        if sign in ("u", "s"):
            if isinstance(first, Const):
                return constant(Const(first.value, value.shape()).value, width)
            if width > own and is_signed:
                return f"{width}'($signed({self.text(first)}))"
            return self._fitted(self.text(first, min(width, own)), min(width, own), width)
        if sign in ("b", "r|", "r&", "r^"):
            reduction = "" if len(first) == 1 else sign[-1].replace("b", "|")
            return self._fitted(f"{reduction}{self._unary(first)}", 1, width)
        if sign == "~" and isinstance(first, Const):
            return constant(~first.value % (1 << own), width)
        wide = width if is_signed else min(width, own)
        return self._fitted(f"{sign}{self._unary(first, wide)}", wide, width)

    def _uneven(self, value: Any, width: int) -> str:
        """Return a shift, quotient or remainder."""
        sign, (left, right) = value.operator, value.operands
        if left.shape().signed or right.shape().signed:
            raise self._refused(f"{sign} of signed numbers")
        wide = width if sign == "<<" else max(width, len(left), len(right))
        by = self._operand(right, None if sign in ("<<", ">>") else wide)
        verilog = "/" if sign == "//" else sign
        return self._fitted(f"{self._operand(left, wide)} {verilog} {by}", wide, width)

    def _chain(self, value: Any, width: int) -> str:
        """Return a chain of & or | without neutral constants."""
        sign = value.operator
        neutral = (1 << width) - 1 if sign == "&" else 0
        parts: list[Any] = []

        def gather(each: Any) -> None:
            if isinstance(each, Operator) and each.operator == sign:
                for operand in each.operands:
                    gather(operand)
            elif not (isinstance(each, Const) and each.value % (1 << width) == neutral):
                parts.append(each)

        gather(value)
        decisive = neutral ^ ((1 << width) - 1)
        if any(isinstance(each, Const) and each.value % (1 << width) == decisive for each in parts):
            return constant(decisive, width)
        if not parts:
            return constant(neutral, width)
        if len(parts) == 1:
            return self.text(parts[0], width)
        sides = [self._operand(each, width) for each in parts]
        # A signal without a driver is a constant, too.
        kept = [each for each in sides if each != constant(neutral, width)]
        return f" {sign} ".join(kept or sides[:1])

    def _comparison(self, sign: str, a: Any, b: Any) -> str:
        signed = a.shape().signed or b.shape().signed
        wide = max(len(each) + (signed and not each.shape().signed) for each in (a, b))
        sides = [self._operand(each, wide) for each in (a, b)]
        if signed:
            sides = [f"$signed({each})" for each in sides]
        return f" {sign} ".join(sides)


def _cut(parts: Any, start: int, stop: int) -> list[Any]:
    """Return bits ``start`` to ``stop`` of a concatenation, as a list of parts."""
    cut, at = [], 0
    for part in parts:
        first, last = max(start - at, 0), min(stop - at, len(part))
        if first < last:
            cut.append(part[first:last])
        at += len(part)
    return cut


def constant(value: int, width: int) -> str:
    value %= 1 << width
    if width == 1:
        return f"1'b{value}"
    return f"{width}'d{value}" if value < 1 << 16 else f"{width}'h{value:x}"
