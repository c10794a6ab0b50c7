"""What searches, models and campaigns rely on in a space."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.spaces import EvolvableSpace, PoolSpace, Space
from seqopt.strings.identity import KINDS
from seqopt.utils.config import Configurable, described, from_config

ODD_STRINGS = ("", " ", "\0", "(", "\u00fc\u00f1\u00ee", "no such string", "~" * 300)
"""Strings that few spaces hold: each is in the space, or is refused in the proper way."""


class SpaceConformance:
    """Tests of a `seqopt.spaces.Space`: inherit them, and override the fixture ``space``.

    The other fixtures are optional, and add what a test cannot know by itself.

    Attributes:
        count: How many strings a test draws; a space may hold fewer.
        picklable: Whether the space is meant for other processes; not where a predicate is a lambda.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> class TestBits(SpaceConformance):
        ...     @pytest.fixture
        ...     def space(self) -> Space:
        ...         return StringSpace("01", 8)
    """

    count: int = 20
    picklable: bool = True

    @pytest.fixture
    def space(self) -> Space:
        """The space."""
        raise NotImplementedError("override the fixture space, so that it returns the space to be tested")

    @pytest.fixture
    def bad_strings(self) -> list[str]:
        """Strings that are not valid strings of the space's kind, such as unreadable SMILES; by default none."""
        return []

    @pytest.fixture
    def writings(self) -> list[tuple[str, str]]:
        """Pairs of different writings of one string of the space; by default none."""
        return []

    @pytest.fixture
    def other_space(self) -> Space | None:
        """A space of the same class with different strings; by default none."""
        return None

    def test_it_is_a_space(self, space: Space) -> None:
        assert isinstance(space, Space), _missing(space, Space)
        assert not isinstance(space, type), f"the fixture space returned the class {space!r}, expected an object"
        assert space.kind in KINDS, f"the kind is {space.kind!r}, expected one of {', '.join(KINDS)}"

    def test_samples_are_distinct_strings_of_the_space(self, space: Space) -> None:
        for n in (self.count, 1):
            strings = space.sample(n, _rng())
            assert all(isinstance(string, str) for string in strings), f"sample returned {strings!r}"
            outside = [string for string in strings if not space.contains(string)]
            assert not outside, f"sample returned strings that the space does not contain: {outside}"
            keys = space.keys_of(strings)
            assert len(set(keys)) == len(keys), f"sample({n}) returned {len(set(keys))} distinct keys: {sorted(keys)}"

    def test_samples_are_as_large_as_they_can_be(self, space: Space) -> None:
        assert space.sample(0, _rng()) == []
        found = space.sample(self.count, _rng())
        assert 0 < len(found) <= self.count, f"sample({self.count}) returned {len(found)} strings"
        if len(found) < self.count:
            again = space.sample(self.count, _rng(1))
            assert set(space.keys_of(again)) == set(space.keys_of(found)), (
                f"sample({self.count}) returned {len(found)} strings, which is right only if the space holds no "
                "others; with another generator there were others"
            )

    def test_the_generator_alone_decides_on_samples(self, space: Space) -> None:
        first = space.sample(self.count, _rng())
        assert space.sample(self.count, _rng()) == first, "two samples from equal generators differ"
        if len(first) > 1:
            others = [space.sample(self.count, _rng(seed)) for seed in range(1, 6)]
            assert any(other != first for other in others), "six different generators gave the same sample"

    def test_keys_of_many_are_those_of_each(self, space: Space) -> None:
        strings = space.sample(self.count, _rng())
        strings += strings[:2]
        keys = space.keys_of(strings)
        assert all(isinstance(key, str) for key in keys)
        assert list(keys) == [space.key(string) for string in strings]
        assert list(space.keys_of([])) == []

    def test_a_key_is_its_own_key(self, space: Space) -> None:
        for key in space.keys_of(space.sample(self.count, _rng())):
            assert space.key(key) == key, f"the key of {key!r}, which is a key, is {space.key(key)!r}"

    def test_writings_of_one_string_share_a_key(self, space: Space, writings: list[tuple[str, str]]) -> None:
        for one, other in writings:
            assert space.key(one) == space.key(other)
            assert space.contains(one), f"the space does not contain {one!r}"
            assert space.contains(other), f"the space contains {one!r}, but not {other!r}, another writing of it"

    def test_every_key_is_encoded_in_the_same_way_alone_and_among_others(self, space: Space) -> None:
        keys = sorted(set(space.keys_of(space.sample(self.count, _rng()))))
        encoded = space.encoder.encode(keys)
        rows = _tokens(encoded)
        assert len(rows) == len(keys)
        assert int(encoded.lengths.max(initial=0)) <= encoded.width
        again = [_tokens(space.encoder.encode([key]))[0] for key in keys]
        assert again == rows, "the tokens of a key depend on what is encoded with it"
        assert len(set(rows)) == len(rows), "different keys have the same tokens"

    def test_odd_strings_are_allowed_or_refused_properly(self, space: Space) -> None:
        for string in ODD_STRINGS:
            contained = space.contains(string)
            assert isinstance(contained, bool | np.bool_), f"contains({string!r}) returned {contained!r}"
            try:
                key = space.key(string)
            except InputError:
                assert not contained, f"the space contains {string!r}, but gives it no key"
                with pytest.raises(InputError):
                    space.keys_of([string])
            else:
                assert isinstance(key, str)
                assert list(space.keys_of([string])) == [key]

    def test_bad_strings_are_refused_and_named(self, space: Space, bad_strings: list[str]) -> None:
        good = space.sample(2, _rng())
        for string in bad_strings:
            assert not space.contains(string), f"the space contains {string!r}"
            for refused in (
                lambda string=string: space.key(string),
                lambda string=string: space.keys_of([*good, string]),
            ):
                with pytest.raises(InputError) as caught:
                    refused()
                assert string in str(caught.value), f"the message does not name {string!r}: {caught.value}"

    def test_its_description_tells_it_from_others_and_stays_the_same(
        self, space: Space, other_space: Space | None
    ) -> None:
        before = described(space)
        assert json.loads(json.dumps(before, allow_nan=False)) == before, f"these are no JSON values: {before!r}"
        space.keys_of(space.sample(self.count, _rng()))
        assert described(space) == before, (
            f"the description has changed with use from {before!r} to {described(space)!r}: what a space learns or "
            "counts belongs into attributes whose names begin with an underscore"
        )
        if other_space is not None:
            assert described(other_space) != before, (
                f"two spaces with different strings have the same description, {before!r}: keep what decides on them "
                "as plain attributes, or inherit seqopt.utils.config.Configurable"
            )

    def test_its_config_makes_the_same_space(self, space: Space) -> None:
        config = described(space)
        if not isinstance(space, Configurable) or config.get("custom"):
            pytest.skip("the space has no config: it has to be given again when a campaign is opened")
        again = from_config(json.loads(json.dumps(config)))
        assert isinstance(again, type(space)), f"the config makes a {type(again).__name__}"
        assert isinstance(again, Configurable)
        assert again.config() == config, f"the config was {config!r}, and that of what it makes is {again.config()!r}"
        assert again.kind == space.kind, f"the kind was {space.kind!r}, and that of what it makes is {again.kind!r}"
        strings = space.sample(self.count, _rng())
        assert again.sample(self.count, _rng()) == strings, "equal generators draw other strings from what it makes"
        assert again.keys_of(strings) == space.keys_of(strings)

    def test_copies_hold_the_same_strings(self, space: Space) -> None:
        expected = space.sample(self.count, _rng())
        copies = [copy.deepcopy(space)]
        if self.picklable:
            try:
                copies.append(pickle.loads(pickle.dumps(space)))
            except Exception as error:
                raise AssertionError(
                    f"the space cannot be pickled ({type(error).__name__}: {error}): define predicates at the top of a "
                    "module, or set picklable = False"
                ) from error
        for copied in copies:
            assert copied.sample(self.count, _rng()) == expected
            assert copied.keys_of(expected) == space.keys_of(expected)


class PoolSpaceConformance(SpaceConformance):
    """Tests of a `seqopt.spaces.PoolSpace`: those of a space, and what makes it a numbered list.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> class TestWords(PoolSpaceConformance):
        ...     @pytest.fixture
        ...     def space(self) -> Space:
        ...         return CandidateSet(["aab", "abb", "bbb"], kind="text")
    """

    def test_it_is_a_pool(self, space: PoolSpace) -> None:
        assert isinstance(space, PoolSpace), _missing(space, PoolSpace)
        assert len(space) > 0

    def test_candidates_keys_and_numbers_belong_together(self, space: PoolSpace) -> None:
        keys = list(space.keys)
        assert len(keys) == len(space), f"there are {len(space)} candidates, but {len(keys)} keys"
        assert len(set(keys)) == len(keys), "two candidates have the same key"
        for index, key in enumerate(keys):
            string = space[index]
            assert space.key(string) == key, f"candidate {index} is {string!r}, whose key is not {key!r}"
            assert space.index_of(string) == space.index_of(key) == index
            assert space.contains(string)

    def test_there_is_nothing_behind_the_last_candidate(self, space: PoolSpace) -> None:
        with pytest.raises(IndexError):
            space[len(space)]

    def test_what_has_no_number_is_not_in_the_pool(self, space: PoolSpace) -> None:
        for string in ODD_STRINGS:
            try:
                found = space.index_of(string)
            except InputError:
                found = None
            assert space.contains(string) == (found is not None), f"contains and index_of disagree on {string!r}"

    def test_the_encoded_candidates_are_the_encoded_keys(self, space: PoolSpace) -> None:
        assert _tokens(space.encoded) == _tokens(space.encoder.encode(list(space.keys)))

    def test_a_sample_can_be_the_whole_pool(self, space: PoolSpace) -> None:
        drawn = space.sample(len(space) + 3, _rng())
        assert sorted(space.keys_of(drawn)) == sorted(space.keys)


class EvolvableSpaceConformance(SpaceConformance):
    """Tests of a `seqopt.spaces.EvolvableSpace`: those of a space, and of its moves.

    Attributes:
        generations: How often individuals are crossed and mutated, one generation from the other.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> class TestBits(EvolvableSpaceConformance):
        ...     @pytest.fixture
        ...     def space(self) -> Space:
        ...         return StringSpace("01", min_length=2, max_length=8)
    """

    generations: int = 3

    def test_it_has_moves(self, space: EvolvableSpace[Any]) -> None:
        assert isinstance(space, EvolvableSpace), _missing(space, EvolvableSpace)

    def test_individuals_are_strings_of_the_space(self, space: EvolvableSpace[Any]) -> None:
        for n in (self.count, 1, 0):
            individuals = space.sample_individuals(n, _rng())
            assert len(individuals) == n, f"sample_individuals({n}) returned {len(individuals)}"
            self._inside(space, individuals, "sample_individuals")
            strings = space.to_strings(individuals)
            assert list(strings) == [space.to_string(one) for one in individuals]
        first, again = (space.to_strings(space.sample_individuals(self.count, _rng(1))) for _ in range(2))
        assert first == again, "individuals drawn with equal generators differ"

    def test_strings_and_individuals_undo_each_other(self, space: EvolvableSpace[Any]) -> None:
        for string in space.to_strings(space.sample_individuals(self.count, _rng())):
            back = space.to_string(space.from_string(string))
            assert back == string, f"the individual of {string!r} stands for {back!r}"
        for string in space.sample(self.count, _rng()):
            back = space.to_string(space.from_string(string))
            assert space.key(back) == space.key(string), f"the individual of {string!r} stands for {back!r}"

    def test_what_is_not_in_the_space_has_no_individual(self, space: EvolvableSpace[Any]) -> None:
        for string in ODD_STRINGS:
            if space.contains(string):
                space.from_string(string)
            else:
                with pytest.raises(InputError):
                    space.from_string(string)

    def test_moves_stay_in_the_space(self, space: EvolvableSpace[Any]) -> None:
        rng = _rng()
        population = space.sample_individuals(self.count, rng)
        for _ in range(self.generations):
            first, second = space.cross(population, population[::-1], rng)
            self._inside(space, [*first, *second], "cross")
            population = space.mutate([*first, *second][: self.count], rng)
            self._inside(space, population, "mutate")

    def test_moves_return_a_child_for_each_parent(self, space: EvolvableSpace[Any]) -> None:
        for n in (self.count, 1, 0):
            parents = space.sample_individuals(n, _rng())
            assert len(space.mutate(parents, _rng())) == n
            children = space.cross(parents, parents[::-1], _rng())
            assert [len(those) for those in children] == [n, n], "cross must return two lists, as long as the first"

    def test_moves_do_not_change_the_parents(self, space: EvolvableSpace[Any]) -> None:
        first, second = (space.sample_individuals(self.count, _rng(seed)) for seed in (0, 1))
        before = space.to_strings(first), space.to_strings(second)
        for seed in range(3):
            space.mutate(first, _rng(seed))
            space.cross(first, second, _rng(seed))
        assert (space.to_strings(first), space.to_strings(second)) == before, "a move has changed its parents"

    def test_the_generator_alone_decides_on_moves(self, space: EvolvableSpace[Any]) -> None:
        parents = space.sample_individuals(self.count, _rng())

        def moved(seed: int) -> list[list[str]]:
            rng = _rng(seed)
            crossed = space.cross(parents, parents[::-1], rng)
            return [list(space.to_strings(those)) for those in (*crossed, space.mutate(parents, rng))]

        first = moved(0)
        assert moved(0) == first, "the same moves with equal generators differ"
        if len(space.sample(3, _rng())) == 3:
            assert any(moved(seed) != first for seed in range(1, 10)), "ten different generators gave the same moves"

    def test_mutations_change_something(self, space: EvolvableSpace[Any]) -> None:
        parents = space.sample_individuals(self.count, _rng())
        before = space.to_strings(parents)
        changed = any(space.to_strings(space.mutate(parents, _rng(seed))) != before for seed in range(5))
        assert changed or len(space.sample(2, _rng())) == 1, "no mutation has changed anything"

    def _inside(self, space: EvolvableSpace[Any], individuals: Sequence[Any], where: str) -> None:
        outside = [string for string in space.to_strings(individuals) if not space.contains(string)]
        assert not outside, f"{where} returned individuals that the space does not contain: {outside}"


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _missing(space: object, protocol: type) -> str:
    # Properties of the object are not looked at: to compute one may be costly.
    members = [name for name in getattr(protocol, "__protocol_attrs__", ()) if name != "encoded"]
    lacking = sorted(name for name in members if not hasattr(type(space), name) and name not in vars(space))
    return f"{type(space).__name__} lacks {', '.join(lacking)} of seqopt.spaces.{protocol.__name__}"


def _tokens(encoded: EncodedStrings) -> list[tuple[int, ...]]:
    """Symbol numbers without padding."""
    return [tuple(row[:length]) for row, length in zip(encoded.tokens.tolist(), encoded.lengths.tolist(), strict=True)]
