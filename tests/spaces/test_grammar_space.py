"""The grammar space: membership, moves, limits, keys, errors."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk import CFG, ChartParser

from seqopt.errors import InputError
from seqopt.grammar import GrammarWarning, load_grammar
from seqopt.spaces import GrammarSpace
from seqopt.strings.identity import canonical_smiles

SMILES = GrammarSpace("smiles", 5, 30, kind="molecule")


def starts_with_no_digit(string: str) -> bool:
    return not string[0].isdigit()


SPACES = {
    "arithmetic": GrammarSpace("arithmetic", 3, 20),
    "narrowed": GrammarSpace("arithmetic", 3, 12, accept=starts_with_no_digit),
    "one length": GrammarSpace("arithmetic", 7, 7),
    "regex": GrammarSpace("regex", 2, 15),
    "smiles": GrammarSpace("smiles", 5, 30),
    "molecules": SMILES,
    "with nothing": GrammarSpace(CFG.fromstring("S -> 'a' S 'b' S | "), 0, 8),
    "ambiguous": GrammarSpace(CFG.fromstring("S -> S S | 'a' | 'b'"), 2, 6),
}


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(sorted(SPACES)), st.integers(0, 2**32 - 1))
def test_samples_and_children_lie_in_the_space_and_repeat_by_seed(name: str, seed: int) -> None:
    space = SPACES[name]

    def generations() -> list[list[str]]:
        rng = np.random.default_rng(seed)
        parents = space.sample_individuals(4, rng)
        found = [parents]
        for _ in range(3):
            first, second = space.cross(found[-1], found[-1][::-1], rng)
            assert len(first) == len(second) == 4
            found += [first, second, space.mutate(first, rng)]
        return [[space.to_string(individual) for individual in individuals] for individuals in found]

    strings = generations()
    assert strings == generations()
    for string in {string for generation in strings for string in generation}:
        assert space.contains(string)
        assert space.to_string(space.from_string(string)) == string
        assert space.min_length <= space.encoder.encode([string]).lengths[0] <= space.max_length
        if space.accept is not None:
            assert space.accept(string)


def test_children_derive_from_the_grammar_by_nltk_too() -> None:
    space, rng = SPACES["arithmetic"], np.random.default_rng(0)
    parser = ChartParser(load_grammar("arithmetic"))
    for tree in space.mutate(space.sample_individuals(30, rng), rng):
        (parsed,) = parser.parse(list(space.rules.terminals_of(tree)))
        assert space.rules.to_nltk(tree) == parsed


def test_mutation_replaces_one_subtree_with_the_same_head() -> None:
    space, rng = SPACES["arithmetic"], np.random.default_rng(0)
    for parent in space.sample_individuals(50, rng):
        (child,) = space.mutate([parent], rng)
        assert child != parent
        heads, ends, _ = space.rules.subtrees(parent)
        new_heads, new_ends, _ = space.rules.subtrees(child)
        assert any(
            heads[node] == new_heads[node]
            and parent.rules[:node] == child.rules[:node]
            and parent.rules[ends[node] :] == child.rules[new_ends[node] :]
            for node in range(min(len(heads), len(new_heads)))
        )


def test_crossover_swaps_subtrees() -> None:
    space, rng = SPACES["arithmetic"], np.random.default_rng(0)
    parents = space.sample_individuals(50, rng), space.sample_individuals(50, rng)
    changed = 0
    for a, b, one, other in zip(*parents, *space.cross(*parents, rng), strict=True):
        # What leaves one parent arrives in the other: together the children hold the rules of the parents.
        assert sorted(one.rules + other.rules) == sorted(a.rules + b.rules)
        changed += {one, other} != {a, b}
    assert changed > 40


def test_parents_without_a_possible_move_come_back() -> None:
    space = GrammarSpace(CFG.fromstring("S -> 'a' T\nT -> 'b'"))
    parents = space.sample_individuals(2, np.random.default_rng(0))
    assert space.mutate(parents, np.random.default_rng(0)) == parents
    assert space.cross(parents, parents, np.random.default_rng(0)) == (parents, parents)
    unrelated = GrammarSpace(CFG.fromstring("S -> A | B\nA -> 'a'\nB -> 'b'"))
    first, second = unrelated.from_string("a"), unrelated.from_string("b")
    # Only the root is shared, and swapping the roots changes nothing.
    assert unrelated.cross([first], [second], np.random.default_rng(0)) == ([first], [second])


def test_mutation_reaches_the_whole_space() -> None:
    space = GrammarSpace("arithmetic", 3, 3)
    everything = {f"{a}{sign}{b}" for a in "x123" for sign in "+*/" for b in "x123"}
    everything |= {f"{opening}{a})" for opening in ("(", "sin(", "exp(") for a in "x123"}
    rng = np.random.default_rng(0)
    individuals, seen = space.sample_individuals(10, rng), set()
    for _ in range(300):
        individuals = space.mutate(individuals, rng)
        seen.update(map(space.to_string, individuals))
    assert seen == everything


def test_samples_are_distinct_and_fewer_only_when_the_space_is_small(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    drawn = SPACES["arithmetic"].sample(300, rng)
    assert len(set(drawn)) == len(drawn) == 300
    monkeypatch.setattr("seqopt.spaces.grammar_space.DRAWS", 500)
    small = GrammarSpace(CFG.fromstring("S -> 'a' S | 'b' S | 'a' | 'b'"), 2, 3)
    assert len(small.sample(100, rng)) == 4 + 8
    assert len(small.sample(5, rng)) == 5


def test_molecules_are_distinct_by_key_and_readable() -> None:
    drawn = SMILES.sample(40, np.random.default_rng(0))
    keys = [canonical_smiles(smiles) for smiles in drawn]
    assert None not in keys
    assert len(set(keys)) == 40
    assert SMILES.key("C(CO)CC") == "CCCCO"
    assert SMILES.contains("C(CO)CC")
    assert not SMILES.contains("C1CCCC")
    with pytest.raises(InputError, match="not a valid molecule"):
        SMILES.key("C1CCCC")
    with pytest.raises(InputError, match="outside the space: not a SMILES"):
        SMILES.from_string("C1CCCC")


def test_tokens_are_terminals() -> None:
    space = SPACES["arithmetic"]
    encoded = space.encoder.encode(["sin(x)", "x+1"])
    alphabet = list(space.encoder.alphabet)
    assert [alphabet[token - 1] for token in encoded.tokens[0]] == ["sin(", "x", ")"]
    assert encoded.lengths.tolist() == [3, 3]
    assert alphabet == list(space.rules.terminals)
    # What is outside the grammar can still be shown to a model.
    assert space.encoder.encode(["x-1"]).lengths.tolist() == [3]


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("x", "'x' has 1 terminals; this space holds strings of 3 to 12"),
        ("x+x+x+x+x+x+x", "has 13 terminals"),
        ("x+*1", "parsing stopped at position 3"),
        ("1+x", "accept.. refuses it"),
        ("x-1", "position 2: '-'"),
    ],
)
def test_strings_outside_say_why(string: str, message: str) -> None:
    space = SPACES["narrowed"]
    assert not space.contains(string)
    assert string not in space
    with pytest.raises(InputError, match=message):
        space.from_string(string)


def test_what_is_no_string_is_refused() -> None:
    with pytest.raises(InputError, match="is not a string"):
        SPACES["arithmetic"].from_string(5)  # type: ignore[arg-type]
    assert 5 not in SPACES["arithmetic"]


def test_blanks_around_a_string_count_only_where_terminals_have_them() -> None:
    assert SPACES["arithmetic"].contains(" x+1\n")
    assert SPACES["arithmetic"].key(" x+1\n") == "x+1"
    blanks = GrammarSpace(CFG.fromstring("S -> 'a' S | 'a' | ' '"))
    assert blanks.contains("a ")
    assert blanks.key("a ") == "a "
    assert not blanks.contains(" a")


def test_trees_whose_strings_would_be_split_otherwise_are_left_out() -> None:
    with pytest.warns(GrammarWarning, match="side by side"):
        space = GrammarSpace(CFG.fromstring("S -> 's' S | 'in' S | 'sin' | 'x'"), 1, 4)
    rng = np.random.default_rng(0)
    individuals = space.sample_individuals(200, rng)
    for tree in space.mutate(individuals, rng) + individuals:
        assert space.encoder.tokenizer.tokenize(space.to_string(tree)) == list(space.rules.terminals_of(tree))
    assert not space.contains("sinx")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 5, "max_length": 4}, "5 to 4"),
        ({"min_length": -1}, "-1 to 50"),
        ({"max_length": 2.5}, "max_length is 2.5"),
        ({"min_length": True}, "min_length is True"),
        ({"kind": "smell"}, "unknown kind 'smell'"),
        ({"min_length": 2, "max_length": 2}, "no string of 2 to 2 terminals: the nearest lengths are 1 and 3"),
        ({"discount": 0}, "discount is 0"),
    ],
)
def test_bad_options_are_refused_before_any_search(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GrammarSpace("arithmetic", **options)


def test_grammars_are_read_from_files_and_faults_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "own.cfg"
    path.write_text("S -> 'a' T\nT -> 'b' T\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"own\.cfg, line 2: T is non-terminating"):
        GrammarSpace(path)
    path.write_text("S -> 'a' | 'a' 'a'\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"own\.cfg has no string of 3 to 9 terminals: the nearest lengths are 2"):
        GrammarSpace(path, 3, 9)
    assert "own.cfg" in repr(GrammarSpace(path, 1, 9))


def test_an_accept_that_refuses_everything_is_an_error_not_a_loop(monkeypatch) -> None:
    monkeypatch.setattr("seqopt.spaces.grammar_space.DRAWS", 50)
    space = GrammarSpace("arithmetic", accept=lambda string: False)
    with pytest.raises(InputError, match="none of 50 random strings"):
        space.sample_individuals(1, np.random.default_rng(0))
    with pytest.raises(InputError, match="none of 50 random strings"):
        space.sample(3, np.random.default_rng(0))


def test_spaces_survive_pickling() -> None:
    space = SPACES["narrowed"]
    again = pickle.loads(pickle.dumps(space))
    draws = [one.sample(5, np.random.default_rng(3)) for one in (space, again)]
    assert draws[0] == draws[1]
