"""One way to write a formula, of the many that describe the same functions.

``c*c*x``, ``x*c-x*c`` and ``x/c`` are ``c*x``: constants that are yet to be found absorb one another, and sums and
products can be written in any order. The canonical form of a formula describes all functions that the formula does,
wherever that is defined, with no more symbols and no more freedom than they need:

- *Without further ado*: no brackets that change nothing; sums and products in one order; equal factors as powers;
  terms that cancel, factors of 1 and terms of 0 left out; ``log(exp(f))``, ``exp(log(f))`` and ``sqrt(f)**2`` are
  ``f``; ``exp(f)*exp(g)`` is ``exp(f+g)``; even and odd functions in one of two ways.
- *With constants*: parts without variables are one constant; so are all constants that are added in one sum, or that a
  product is multiplied or divided by; a constant's sign is free; equal terms without constants have one coefficient;
  ``c*(x+c)`` is ``c*x+c``; ``cos(f+c)`` is ``sin(f+c)``.

What holds for part of the numbers only is left alone, such as ``sqrt(c*x)`` and ``c*sqrt(x)``, and so is what holds in
exact arithmetic only, such as ``exp(x+c)`` and ``c*exp(x)``, of which the second overflows earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from seqopt.objectives.expressions import ARITY, Expression, parse_expression
from seqopt.objectives.notation import number_text

MOST_PARTS = 100_000
"""Parts of formulas that are remembered."""

ROUNDS = 10
"""Forms of forms that are looked at."""

_SUM, _PRODUCT, _POWER, _ATOM = range(4)


@dataclass(frozen=True)
class Spelling:
    """How a grammar writes formulas.

    Attributes:
        constant: What stands for a constant that is yet to be found; `None` for none.
        powers: Whole exponents that it has.
        sign: Its sign of a power.
    """

    constant: str | None = None
    powers: tuple[int, ...] = ()
    sign: str = "**"

    @classmethod
    def of(cls, terminals: Sequence[str], constant: str | None = None) -> Spelling:
        """The spelling of a grammar with these terminals.

        Example:
            >>> Spelling.of(["x", "+", "**2", "**3", "c"], "c")
            Spelling(constant='c', powers=(3, 2), sign='**')
        """
        for sign in ("**", "^"):
            whole = [text.removeprefix(sign) for text in terminals if text.startswith(sign) and text != sign]
            if sign in terminals:
                whole += [text for text in terminals if text.isdigit()]
            powers = {int(text) for text in whole if text.isdigit() and int(text) > 1}
            if powers:
                return cls(constant, tuple(sorted(powers, reverse=True)), sign)
        return cls(constant)


class Canonical:
    """Brings formulas into their canonical form: see the module.

    It remembers parts that it has met, since formulas of a search have most of theirs in common.

    Args:
        spelling: How formulas are written.

    Example:
        >>> form = Canonical(Spelling("c", (3, 2)))
        >>> def written(text):
        ...     return form(parse_expression(text, ("x", "y"), constant="c"))
        >>> written("y+sin(c)-(x*c/c-c)"), written("c*(x+c)"), written("x*y*(x)"), written("y-x-y")
        ('c*x+y+c', 'c*x+c', 'x**2*y', 'c*y-x')
        >>> written("sqrt(c*x)"), written("exp(x+c)")
        ('sqrt(c*x)', 'exp(x+c)')
    """

    def __init__(self, spelling: Spelling) -> None:
        self._writer = _Writer(spelling)
        self._final: set[str] = set()

    def __call__(self, formula: Expression) -> str:
        """The canonical form of a formula, whose own canonical form it is.

        Args:
            formula: Read by `seqopt.objectives.parse_expression`.
        """
        text = formula.text
        # A form may open the way to another; two rounds are the rule.
        for _ in range(ROUNDS):
            found = self._writer.of(formula).text
            if found == text or found in self._final:
                if len(self._final) >= MOST_PARTS:
                    self._final.clear()
                self._final.add(found)
                return found
            formula = parse_expression(found, formula.variables, constant=self._writer.spelling.constant)
            text = found
        return text


@dataclass(frozen=True)
class _Part:
    """Part of a formula in its canonical form.

    Attributes:
        text: As it is written.
        level: How tightly its outermost operation binds.
        varied: Whether it holds a variable.
        free: Whether it holds a constant that is yet to be found.
        kind: What it is: ``constant``, ``number``, ``variable``, ``call``, ``sum``, ``product`` or ``power``.
        terms: Of a sum, with their signs.
        factors: Of a product, with their exponents; a constant in front is not among them.
        scaled: Of a product, whether a constant stands in front.
        name: Of a call, the function.
        value: Of a number.
        inner: Of a call, its argument.
    """

    text: str
    level: int
    varied: bool
    free: bool
    kind: str
    terms: tuple[tuple[int, _Part], ...] = ()
    factors: tuple[tuple[_Part, int], ...] = ()
    scaled: bool = False
    name: str = ""
    value: float = 0.0
    inner: tuple[_Part, ...] = field(default=(), repr=False)

    @cached_property
    def loose(self) -> bool:
        """Whether any factor, also a negative one, is taken up by its constants."""
        if self.kind == "sum":
            return all(part.loose for _, part in self.terms)
        if self.kind == "product":
            return self.scaled or any(power == 1 and part.loose for part, power in self.factors)
        return self.kind == "constant"

    def at_least(self, level: int) -> str:
        """The text, in brackets if it binds less tightly."""
        return self.text if self.level >= level and not self.text.startswith("-") else f"({self.text})"


_Terms = list[tuple[int, _Part]]
_Factors = list[tuple[_Part, int]]


class _Writer:
    """Makes canonical parts of parts, from the inside to the outside."""

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling
        self.constant = None
        if spelling.constant is not None:
            self.constant = _Part(spelling.constant, _ATOM, False, True, "constant")
        self._made: dict[tuple[str, ...], _Part] = {}

    def of(self, formula: Expression) -> _Part:
        """The canonical part that a formula is."""
        stack: list[_Part] = []
        for step in formula.steps:
            if isinstance(step, float):
                stack.append(_number(step))
            elif isinstance(step, int):
                assert self.constant is not None
                stack.append(self.constant)
            elif step not in ARITY:
                stack.append(_Part(step, _ATOM, True, False, "variable"))
            else:
                operands = [stack.pop() for _ in range(ARITY[step])][::-1]
                known = step, *(part.text for part in operands)
                found = self._made.get(known)
                if found is None:
                    if len(self._made) >= MOST_PARTS:
                        self._made.clear()
                    found = self._made[known] = self._applied(step, operands)
                stack.append(found)
        return stack.pop()

    def _applied(self, step: str, operands: Sequence[_Part]) -> _Part:
        """The canonical part that an operation on canonical parts is."""
        first, last = operands[0], operands[-1]
        if step == "(-)":
            return _number(-first.value) if first.kind == "number" else self.sum([(-1, first)])
        if step in ("+", "-"):
            return self.sum([(1, first), (1 if step == "+" else -1, last)])
        if step in ("*", "/"):
            return self.product([(first, 1), (last, 1 if step == "*" else -1)])
        return self.power(first, last) if step == "**" else self.call(step, first)

    # Sums

    def sum(self, terms: _Terms) -> _Part:
        """The sum of some parts."""
        flat: _Terms = []
        for sign, part in terms:
            flat += [(sign * inner, term) for inner, term in part.terms] if part.kind == "sum" else [(sign, part)]
        numbers = [(sign, part) for sign, part in flat if not part.varied and part.text != "0"]
        varied = self._collected([(sign, part) for sign, part in flat if part.varied])
        if self.constant is not None and (len(numbers) > 1 or any(part.free for _, part in numbers)):
            numbers = [(1, self.constant)]
        return self._written_sum([*varied, *numbers])

    def _collected(self, terms: _Terms) -> _Terms:
        """Equal terms made one, and signs left to constants."""
        found: _Terms = []
        like: dict[str, _Terms] = {}
        for sign, part in terms:
            core = self.product(list(part.factors)) if part.kind == "product" and part.scaled else part
            if core.free:
                found.append((1 if part.loose else sign, part))
            else:
                like.setdefault(core.text, []).append((0 if core is not part else sign, core))
        for several in like.values():
            core = several[0][1]
            if len(several) == 1 and several[0][0]:
                found.append(several[0])
            elif self.constant is not None:
                found.append((1, self.product([(self.constant, 1), (core, 1)])))
            else:
                # Without constants there is no way to write 2*f; those that cancel go.
                total = sum(sign for sign, _ in several)
                found += [(1 if total > 0 else -1, core)] * abs(total)
        if terms and not found:
            found.append((1, _number(0.0)))
        return found

    def _written_sum(self, terms: _Terms) -> _Part:
        if not terms:
            return _number(0.0)
        terms = sorted(terms, key=lambda term: (not term[1].varied, -term[0], term[1].text))
        leading = next((index for index, (sign, _) in enumerate(terms) if sign > 0), 0)
        terms = [terms[leading], *terms[:leading], *terms[leading + 1 :]]
        if len(terms) == 1 and terms[0][0] > 0:
            return terms[0][1]
        texts = ["-+"[sign > 0] + part.at_least(_PRODUCT) for sign, part in terms]
        text = "".join(texts).removeprefix("+")
        varied, free = any(part.varied for _, part in terms), any(part.free for _, part in terms)
        return _Part(text, _SUM, varied, free, "sum", terms=tuple(terms))

    def _turned(self, part: _Part) -> _Part:
        """A sum or its opposite, always the same of the two; constants take up their signs anyway."""
        if part.kind != "sum":
            return part
        fixed = sorted((term.text, sign) for sign, term in part.terms if not term.loose)
        if not fixed or fixed[0][1] > 0:
            return part
        return self._written_sum([(1 if term.loose else -sign, term) for sign, term in part.terms])

    # Products

    def product(self, factors: _Factors) -> _Part:
        """The product of some parts to some powers."""
        flat, scaled, sign = self._flat(factors)
        numbers = [(part, power) for part, power in flat if part.kind == "number" and part.value != 1]
        rest = self._exponentials(self._merged([(part, power) for part, power in flat if part.kind != "number"]))
        if self.constant is not None and (len(numbers) > 1 or scaled):
            scaled, numbers = True, []
        if scaled:
            sign = 1
            rest = [(self._turned(part), power) for part, power in rest]
            scaled, rest = self._spread(rest)
        else:
            rest = [(self._turned(part) if power % 2 == 0 else part, power) for part, power in rest]
            if any(power == 1 and part.loose for part, power in rest):
                sign = 1
        merged = [*numbers, *self._merged(rest)]
        if not scaled and not any(power > 0 for _, power in merged):
            # Something has to stand above the line.
            if self.constant is not None and (merged or flat) and not any(part.kind == "number" for part, _ in flat):
                scaled = True
            else:
                merged = [(_number(1.0), 1), *merged]
        made = self._written_product(merged, scaled)
        return made if sign > 0 else self.sum([(-1, made)])

    def _flat(self, factors: _Factors) -> tuple[_Factors, bool, int]:
        """Factors that are no products themselves, whether a constant is among them, and the sign."""
        flat: _Factors = []
        scaled, sign = False, 1
        queue = list(factors)
        while queue:
            part, power = queue.pop(0)
            if part.kind == "product":
                scaled |= part.scaled
                queue = [(inner, of * power) for inner, of in part.factors] + queue
            elif part.kind == "constant":
                scaled = True
            elif part.kind == "sum" and len(part.terms) == 1:
                sign *= -1 if power % 2 else 1
                queue.insert(0, (part.terms[0][1], power))
            elif part.kind == "number" and part.value < 0:
                sign *= -1 if power % 2 else 1
                flat.append((_number(-part.value), power))
            elif part.name == "sqrt" and power % 2 == 0:
                queue.insert(0, (part.inner[0], power // 2))
            else:
                flat.append((part, power))
        return flat, scaled, sign

    def _merged(self, factors: _Factors) -> _Factors:
        """Equal factors as powers; those with constants differ even if they look alike."""
        found: _Factors = []
        like: dict[str, tuple[_Part, int]] = {}
        for part, power in factors:
            if part.free:
                found.append((part, power))
            else:
                like[part.text] = part, like.get(part.text, (part, 0))[1] + power
        for part, power in like.values():
            if part.name == "sqrt" and power and power % 2 == 0:
                found.append((part.inner[0], power // 2))
            elif power:
                found.append((part, power))
        return sorted(found, key=lambda factor: (factor[0].text, -factor[1]))

    def _exponentials(self, factors: _Factors) -> _Factors:
        """exp(f)*exp(g) as exp(f+g), and exp(c*f)**2 as exp(c*f)."""
        found: _Factors = []
        exponents: _Terms = []
        for part, power in factors:
            if part.name == "exp" and (abs(power) == 1 or part.inner[0].loose):
                exponents.append((1 if power > 0 or part.inner[0].loose else -1, part.inner[0]))
            else:
                found.append((part, power))
        if not exponents:
            return found
        total = self.sum(exponents)
        if total.kind == "sum" and all(sign < 0 for sign, _ in total.terms):
            return [*found, (self.call("exp", self.sum([(-1, total)])), -1)]
        return found if total.text == "0" else [*found, (self.call("exp", total), 1)]

    def _spread(self, factors: _Factors) -> tuple[bool, _Factors]:
        """The factors with a constant among the terms of one of them, if that needs no further constants."""
        if any(power == 1 and part.loose for part, power in factors):
            return False, factors
        for index, (part, power) in enumerate(factors):
            if power == 1 and part.kind == "sum" and sum(not term.loose for _, term in part.terms) <= 1:
                assert self.constant is not None
                made = [
                    (1, term if term.loose else self.product([(self.constant, 1), (term, 1)])) for _, term in part.terms
                ]
                return False, [*factors[:index], (self.sum(made), 1), *factors[index + 1 :]]
        return True, factors

    def _written_product(self, factors: _Factors, scaled: bool) -> _Part:
        if self.constant is not None and not any(part.varied for part, _ in factors) and (scaled or len(factors) > 1):
            return self.constant
        above = [(part, power) for part, power in factors if power > 0]
        below = [(part, -power) for part, power in factors if power < 0]
        if not scaled and len(factors) == 1 and above and above[0][1] == 1:
            return above[0][0]
        assert self.constant is not None or not scaled
        texts = [self.constant.text] if scaled and self.constant is not None else []
        texts += [text for part, power in above for text in self._repeated(part, power)]
        text = "*".join(texts) + "".join(f"/{text}" for part, power in below for text in self._repeated(part, power))
        level = _POWER if not below and len(texts) == 1 else _PRODUCT
        varied, free = any(part.varied for part, _ in factors), scaled or any(part.free for part, _ in factors)
        return _Part(text, level, varied, free, "product", factors=tuple(factors), scaled=scaled)

    def _repeated(self, part: _Part, power: int) -> list[str]:
        """A power as the grammar writes it: as factors, of which some are powers."""
        texts: list[str] = []
        for exponent in (*self.spelling.powers, 1):
            while power >= exponent:
                power -= exponent
                once = part.at_least(_PRODUCT + 1 if exponent == 1 else _ATOM)
                texts.append(once if exponent == 1 else f"{once}{self.spelling.sign}{exponent}")
        return texts

    # The rest

    def power(self, base: _Part, exponent: _Part) -> _Part:
        """A part to the power of another."""
        whole = exponent.kind == "number" and exponent.value == int(exponent.value) and 0 < exponent.value <= 10
        if whole:
            return self.product([(base, int(exponent.value))])
        free = base.free or exponent.free
        if self.constant is not None and free and not base.varied and not exponent.varied:
            return self.constant
        text = f"{base.at_least(_ATOM)}{self.spelling.sign}{exponent.at_least(_ATOM)}"
        return _Part(text, _POWER, base.varied or exponent.varied, free, "power")

    def call(self, name: str, part: _Part) -> _Part:
        """A function of a part."""
        if self.constant is not None and part.free and not part.varied:
            return self.constant
        if {name, part.name} == {"exp", "log"}:
            return part.inner[0]
        if name in ("sin", "cos"):
            shifted = part.kind == "sum" and any(term.kind == "constant" for _, term in part.terms)
            name = "sin" if shifted else name
            if shifted or name == "cos":
                part = self._turned(part)
        return _Part(f"{name}({part.text})", _ATOM, part.varied, part.free, "call", name=name, inner=(part,))


def _number(value: float) -> _Part:
    return _Part(number_text(value), _ATOM, False, False, "number", value=value)
