"""Derivations by enumeration: the definition, spelt out, as an oracle for small grammars."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from seqopt.grammar import Rules


def derivations(rules: Rules, longest: int, most_rules: int) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """All leftmost derivations of at most ``most_rules`` rules and ``longest`` terminals, with their terminals."""

    def expand(
        taken: tuple[int, ...], done: tuple[str, ...], form: tuple[int | str, ...]
    ) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
        while form and isinstance(form[0], str):
            done, form = (*done, form[0]), form[1:]
        if len(done) > longest:
            return
        if not form:
            yield taken, done
        elif len(taken) < most_rules:
            for rule, (head, body) in enumerate(rules):
                if head == form[0]:
                    yield from expand((*taken, rule), done, body + form[1:])

    return expand((), (), (rules.start,))


def probability(rules: Rules, taken: tuple[int, ...], all_taken: list[tuple[int, ...]], discount: float) -> float:
    """How likely the derivation is: at each node, c^(uses above) over the rules with which some derivation goes on."""
    total = 1.0
    above: list[list[int]] = [[]]
    for step, rule in enumerate(taken):
        branch = above.pop()
        possible = {other[step] for other in all_taken if other[:step] == taken[:step]}
        weights = {number: discount ** branch.count(number) for number in possible}
        total *= weights[rule] / sum(weights.values())
        below = [*branch, rule]
        above.extend(below for symbol in rules.bodies[rule] if isinstance(symbol, int))
    return total


@pytest.fixture(scope="session")
def enumeration() -> SimpleNamespace:
    return SimpleNamespace(derivations=derivations, probability=probability)
