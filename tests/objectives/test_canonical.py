"""One formula for each function: what is told apart, that nothing is lost, and that spaces keep to it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from seqopt import minimize
from seqopt.objectives import ExpressionError, FormulaSpace, fit_constants, parse_expression
from seqopt.spaces import GrammarSpace
from seqopt.utils.config import from_config

SMALL = """
S -> S '+' P | S '-' P | P
P -> P '*' F | P '/' F | F
F -> 'x' | 'c' | 'x' '**2' | 'sin(' S ')' | 'exp(' S ')' | '(' S ')'
"""


def grammar(tmp_path: Path, rules: str) -> str:
    path = tmp_path / "own.cfg"
    path.write_text(rules)
    return str(path)


@pytest.mark.parametrize(
    ("form", "others"),
    [
        ("c*x", ["x*c", "c*c*x", "x/c", "c*x/c", "x*c-c*x", "(c)*(x)", "x-x", "x+x+x", "c/c*x", "x*sin(c)"]),
        ("x+c", ["c+x", "x-c", "c+(x+c)", "x+c*c-exp(c)", "x+x/x", "(c+x)-c"]),
        ("c*x+c", ["c-x*c", "c*(x+c)", "(x-c)/c", "c+x-x", "x*c+c+x", "c*(c*x+c)*c"]),
        ("c/x", ["c/(c*x)", "x/x/x", "c/(x/c)", "x**2/x**3"]),
        ("x+x**2", ["x+x*x", "x+(x)**2", "x*x+x", "sqrt(x)*sqrt(x)+x**2", "log(exp(x))+x**2"]),
        ("sin(x+c)", ["cos(x-c)", "sin(c-x)", "cos(c-(c+x))"]),
        ("c*x**2", ["(c*x)**2", "c*x*x", "x**2/c", "x**3/(x*c)"]),
        ("exp(c*x+c)", ["exp(c*x)*exp(c-c*x)", "exp(c*(x+c))**2"]),
        ("(c)", ["c+c", "c*c*c", "sin(c)", "exp(c)**2", "x/x", "c-c/c", "(c+c)"]),
    ],
)
def test_what_is_the_same_function_is_told_apart_no_more(form: str, others: list[str]) -> None:
    space = FormulaSpace("formulas:x+c", 3, 40, constant="c")
    assert space.is_canonical(form)
    assert {other: space.key(other) for other in others} | {form: form} == dict.fromkeys([*others, form], form)
    assert not any(map(space.is_canonical, others))
    assert all(map(space.contains, others))


def test_what_is_not_the_same_function_stays() -> None:
    formulas = [
        *("sqrt(c*x)", "c*sqrt(x)", "exp(x+c)", "c*exp(x)", "sin(c*x)", "sin(c*x)+sin(c*x)", "log(c*x)", "log(x)+c"),
        *("(x+c)*(x+c)", "(x+c)**2", "x**3", "sqrt(x**2)", "(x)", "x/(x+c)", "c/(x+c)", "c/(c*x+c)", "c*(x+x**2)"),
    ]
    space = FormulaSpace("formulas:x+c", 3, 40, constant="c")
    assert space.keys_of(formulas) == formulas
    several = FormulaSpace("formulas:x,y+c", 3, 40, variables=("x", "y"), constant="c")
    assert several.keys_of(["y*x", "x*y", "x/y", "y-x", "x-y", "c*(y-x)"]) == [
        "x*y",
        "x*y",
        "x/y",
        "y-x",
        "x-y",
        "c*(x-y)",
    ]


def test_every_formula_that_stands_aside_has_another_no_longer_one_in_the_space(tmp_path: Path) -> None:
    path = grammar(tmp_path, SMALL)
    for shortest, longest in ((1, 5), (3, 6)):
        plain, space = GrammarSpace(path, shortest, longest), FormulaSpace(path, shortest, longest, constant="c")
        every = [text for text in _every(longest) if shortest <= len(plain.encoder.tokenizer.tokenize(text))]
        assert len(every) > 300
        aside = [text for text in every if not space.is_canonical(text)]
        assert len(aside) > 0.8 * len(every)
        for text in aside:
            form = space.key(text)
            assert space.is_canonical(form)
            assert plain.contains(form)
            lengths = [len(plain.encoder.tokenizer.tokenize(one)) for one in (form, text)]
            assert lengths[0] <= lengths[1]


def test_the_other_one_describes_all_the_same_functions(tmp_path: Path) -> None:
    path = grammar(tmp_path, SMALL)
    space = FormulaSpace(path, 1, 6, constant="c")
    rng = np.random.default_rng(0)
    x = np.linspace(0.3, 2.1, 15)
    every = _every(6)
    checked = 0
    for index in rng.permutation(len(every))[:150]:
        text = every[index]
        if space.is_canonical(text):
            continue
        formula, form = (parse_expression(one, constant="c") for one in (text, space.key(text)))
        values = rng.uniform(0.4, 1.5, formula.constants) * rng.choice([-1, 1], formula.constants)
        wanted = np.broadcast_to(formula({"x": x}, values), x.shape)
        if not np.isfinite(wanted).all() or np.abs(wanted).max() > 1e4:
            continue
        fit = fit_constants(form, {"x": x}, wanted, np.random.default_rng(1))
        assert fit.mse <= 1e-5 * max(np.var(wanted), 1e-6 * np.mean(wanted**2)), (text, space.key(text))
        checked += 1
    assert checked > 80


def _every(longest: int) -> list[str]:
    """All formulas of `SMALL`, by their own recursion."""
    sums: dict[int, list[str]] = {}
    products: dict[int, list[str]] = {}
    factors: dict[int, list[str]] = {}
    for n in range(1, longest + 1):
        inner = sums.get(n - 2, [])
        factors[n] = [f"{opened}{text})" for opened in ("(", "sin(", "exp(") for text in inner]
        factors[n] += {1: ["x", "c"], 2: ["x**2"]}.get(n, [])
        for made, parts, signs in ((products, factors, "*/"), (sums, products, "+-")):
            made[n] = list(parts[n])
            for left in range(1, n - 1):
                pairs = itertools.product(made[left], signs, parts[n - 1 - left])
                made[n] += [f"{a}{sign}{b}" for a, sign, b in pairs]
    return [text for texts in sums.values() for text in texts]


@pytest.mark.parametrize("name", ["formulas:x+c", "arithmetic:x+c"])
def test_what_is_drawn_and_changed_is_canonical_and_within_the_limits(name: str) -> None:
    space = FormulaSpace(name, 3, 15, constant="c")
    rng = np.random.default_rng(0)
    drawn = space.sample_individuals(200, rng)
    children = space.mutate(drawn, rng)
    crossed = [tree for trees in space.cross(drawn, children, rng) for tree in trees]
    assert np.mean([one != other for one, other in zip(drawn, children, strict=True)]) > 0.95
    assert np.mean([one != other for one, other in zip(drawn, crossed, strict=False)]) > 0.9
    for tree in (*drawn, *children, *crossed):
        string = space.to_string(tree)
        assert space.is_canonical(string)
        assert 3 <= len(space.rules.terminals_of(tree)) <= 15
        assert space.from_string(string) == tree
    assert len(set(space.sample(100, rng))) == 100


def test_a_grammar_that_lacks_the_form_keeps_its_formulas(tmp_path: Path) -> None:
    # Neither c alone nor products: x+x cannot be c*x here, and constants are in no other place.
    path = grammar(tmp_path, "S -> S '+' T | T '-' T\nT -> 'c' | 'x'\n")
    space = FormulaSpace(path, 3, 7, constant="c")
    found = set(space.sample(200, np.random.default_rng(0)))
    assert {"x-x", "c-x", "x-c", "c-c"} <= found
    assert space.key("x-c+c+c") == "x-c+c+c"
    assert space.key("c-c+x+x") == "c-c+x+x"
    # Operators and names that formulas do not know are left alone.
    odd = FormulaSpace(grammar(tmp_path, "S -> S '%' 'x' | 'tan(' S ')' | 'x' | 'c'\n"), 1, 9, constant="c")
    assert odd.key("tan(x%x)") == "tan(x%x)"
    assert len(odd.sample(20, np.random.default_rng(0))) == 20


def test_it_is_written_down_and_made_again() -> None:
    space = FormulaSpace("formulas:x,y+k", 3, 15, variables=("x", "y"), constant="k")
    again = from_config(space.config())
    assert isinstance(again, FormulaSpace)
    assert again.config() == space.config()
    assert again.key("y*k-k*y") == "k*y"


def test_a_search_scores_no_function_twice() -> None:
    x = np.linspace(-1, 1, 12)
    error = ExpressionError(x, np.sin(2 * x) + x**2, constant="c")
    space = FormulaSpace("formulas:x+c", 3, 12, constant="c")
    known = {"x*c-c": 0.3, "c/c+c*x": 0.3}
    result = minimize(error, space, initial=5, budget=5, batch_size=5, acquisition="random", known={"x*c-c": 0.3})
    strings = result.evaluations["string"].tolist()
    # What is known is kept as it was written, and not scored once more in another way.
    assert strings[0] == "x*c-c"
    assert len({space.key(string) for string in strings}) == len(strings)
    assert all(map(space.is_canonical, strings[1:]))
    result = minimize(error, space, initial=5, budget=0, batch_size=5, acquisition="random", known=known)
    assert space.keys_of(known) == ["c*x+c", "c*x+c"]
