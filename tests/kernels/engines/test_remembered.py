"""Sums of parts that are kept, against those computed anew."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from seqopt import Optimizer, StringSpace
from seqopt.acquisition import LogExpectedImprovement
from seqopt.encoding import Alphabet, EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel, engines
from seqopt.kernels.engines import PartSums, order_sums, remembered, self_order_sums
from seqopt.models import StringGP
from seqopt.scorers import GaussianScoring

ENCODER = Encoder(alphabet=Alphabet("ABCD"))
WEIGHTS = np.array([[1.0, 0.5, 0.25], [0.2, 2.0, 0.0]])


def drawn(rng: np.random.Generator, count: int, shortest: int = 12, longest: int = 20) -> list[str]:
    return ["".join(rng.choice(list("ABCD"), rng.integers(shortest, longest + 1))) for _ in range(count)]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parts each call of an engine from now on is given."""
    calls: list[int] = []
    chosen = engines._chosen

    def counting(name: str, a: EncodedStrings, b: EncodedStrings | None, *arguments: object, **options: object):
        calls.append(len(a if b is None else b))
        return chosen(name, a, b, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engines, "_chosen", counting)
    return calls


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("partitions", [2, 5])
def test_generations_have_the_sums_that_are_computed_anew(partitions: int, threads: int) -> None:
    rng = np.random.default_rng(partitions)
    known, children = ENCODER.encode(drawn(rng, 9)), drawn(rng, 12)
    parts = PartSums()
    options = {"weights": WEIGHTS, "partitions": partitions, "threads": threads}
    for _ in range(4):
        encoded = ENCODER.encode(children)
        with parts.used():
            double, _ = order_sums(known, encoded, 0.6, 3, **options)
            single, _ = order_sums(known, encoded, 0.6, 3, dtype=np.float32, **options)
            other, _ = order_sums(known, encoded, 0.3, 3, dtype=np.float32, **options)
            vector, _ = order_sums(known, encoded, 0.6, 3, dtype=np.float32, **options | {"weights": WEIGHTS[1]})
            own, _ = self_order_sums(encoded, 0.6, 3, **options)
        expected, _ = order_sums(known, encoded, 0.6, 3, **options)
        assert np.array_equal(double, expected)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=1e-5)
        np.testing.assert_allclose(vector, expected[1], rtol=1e-5)
        np.testing.assert_allclose(other, order_sums(known, encoded, 0.3, 3, **options)[0], rtol=1e-5)
        np.testing.assert_allclose(own, self_order_sums(encoded, 0.6, 3, **options)[0], rtol=1e-12)
        # Children of two, which have parts of both, and some that are there twice.
        children = [one[: len(one) // 2] + children[index - 1][len(one) // 2 :] for index, one in enumerate(children)]
        children = [one for one in children if len(one) >= partitions] + children[:2]


def test_only_new_parts_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = ENCODER.encode(["AABBCCDD", "ABCDABCD"])
    parts = PartSums()
    calls = counted(monkeypatch)
    options = {"partitions": 2, "dtype": np.float32, "weights": np.ones(2)}
    with parts.used():
        order_sums(known, ENCODER.encode(["AAAABBBB", "AAAACCCC", "BBBBAAAA"]), 0.5, 2, **options)
        assert calls == [2, 3]
        calls.clear()
        # The same parts at other ends are compared with other parts; those of another list with others, too.
        order_sums(known, ENCODER.encode(["BBBBCCCC", "CCCCAAAA"]), 0.5, 2, **options)
        assert calls == [1]
        calls.clear()
        order_sums(ENCODER.encode(["AABBCCDD", "ABCDABCD"]), ENCODER.encode(["BBBBCCCC"]), 0.5, 2, **options)
        order_sums(known, ENCODER.encode(["BBBBCCCC"]), 0.5, 2, **options | {"weights": np.array([1.0, 2.0])})
        order_sums(known, ENCODER.encode(["BBBBCCCC"]), 0.4, 2, **options)
        assert calls == [1] * 6
        calls.clear()
        # The parts of all strings with themselves are one call, whichever parts they are.
        self_order_sums(ENCODER.encode(["AAAABBBB", "BBBBAAAA"]), 0.5, 2, partitions=2)
        self_order_sums(ENCODER.encode(["BBBBBBBB"]), 0.5, 2, partitions=2)
        assert calls == [4]
    calls.clear()
    order_sums(known, ENCODER.encode(["BBBBCCCC"]), 0.5, 2, **options)
    assert calls == [1, 1]
    assert remembered.parts_in_use() is None


def test_what_was_computed_in_double_precision_is_not_computed_in_single(monkeypatch: pytest.MonkeyPatch) -> None:
    known, new = ENCODER.encode(["AABBCCDD", "ABCDABCD"]), ENCODER.encode(["AAAABBBB", "AAAACCCC"])
    parts = PartSums()
    calls = counted(monkeypatch)
    with parts.used():
        double, _ = order_sums(known, new, 0.5, 2, partitions=2)
        calls.clear()
        single, _ = order_sums(known, new, 0.5, 2, partitions=2, dtype=np.float32)
        assert not calls
        # Rounded numbers are of no use where double precision is asked for, nor where there are to be derivatives.
        again, slopes = order_sums(known, new, 0.5, 2, partitions=2, derivative=True)
    assert calls == [2, 2]
    np.testing.assert_allclose(single, double, rtol=1e-6)
    assert np.array_equal(double, again)
    assert slopes is not None


def test_more_weights_than_orders_are_noted_as_weighted_sums() -> None:
    rng = np.random.default_rng(9)
    known, new = ENCODER.encode(drawn(rng, 5)), ENCODER.encode(drawn(rng, 4))
    weights = rng.uniform(size=(5, 3))
    parts = PartSums()
    with parts.used():
        double, _ = order_sums(known, new, 0.5, 3, partitions=2, weights=weights)
        single, _ = order_sums(known, new, 0.5, 3, partitions=2, weights=weights, dtype=np.float32)
    np.testing.assert_allclose(double, order_sums(known, new, 0.5, 3, partitions=2, weights=weights)[0], rtol=1e-12)
    np.testing.assert_allclose(single, double, rtol=1e-6)


def test_an_alphabet_that_grows_changes_no_names() -> None:
    # Two symbols in one byte each are the bytes of one symbol in two.
    encoder = Encoder()
    first = encoder.encode(["".join(map(chr, range(97, 97 + 2))) * 2])
    wide = Encoder(alphabet=Alphabet([chr(0x4E00 + place) for place in range(600)]))
    tokens = np.array([[1 + 256 * 2, 1 + 256 * 2]], dtype=np.uint16)
    second = EncodedStrings(tokens, np.array([2], dtype=np.int32))
    known = wide.encode([chr(0x4E00) * 4])
    parts = PartSums()
    with parts.used():
        for strings in (first, second):
            sums, _ = order_sums(known, strings, 0.5, 2, partitions=2, dtype=np.float32)
            own, _ = self_order_sums(strings, 0.5, 2, partitions=2)
            np.testing.assert_allclose(sums, order_sums(known, strings, 0.5, 2, partitions=2)[0], rtol=1e-6)
            expected = EncodedStrings(strings.tokens.copy(), strings.lengths.copy())
            np.testing.assert_allclose(own, order_sums(expected, None, 0.5, 2, partitions=2)[0][:, 0], rtol=1e-12)


def test_memory_is_bounded() -> None:
    rng = np.random.default_rng(1)
    known = ENCODER.encode(drawn(rng, 10))
    options = {"partitions": 4, "dtype": np.float32}
    parts = PartSums(budget=40_000)
    with parts.used():
        for _ in range(20):
            new = ENCODER.encode(drawn(rng, 12))
            sums, _ = order_sums(known, new, 0.5, 3, **options)
            np.testing.assert_allclose(sums, order_sums(known, new, 0.5, 3, partitions=4)[0], rtol=1e-5)
            assert parts.held <= 40_000
        before = parts.held
        assert before
        # 14,400 bytes of sums, and more of their names: more than half.
        order_sums(known, ENCODER.encode(drawn(rng, 30)), 0.5, 3, **options)
        assert parts.held == before


def test_names_of_long_strings_count() -> None:
    rng = np.random.default_rng(8)
    known, new = ENCODER.encode(["AB" * 1000]), ENCODER.encode(drawn(rng, 40, 1900, 2000))
    parts = PartSums(budget=200_000)
    with parts.used():
        order_sums(known, new, 0.5, 2, weights=np.ones(2), partitions=2, dtype=np.float32)
        assert parts.held == 0  # names would take 160,000 bytes
        order_sums(known, new.take(np.arange(10)), 0.5, 2, weights=np.ones(2), partitions=2, dtype=np.float32)
        assert 40_000 < parts.held < 50_000


def test_memory_is_bounded_whatever_parts_are_compared_with() -> None:
    rng = np.random.default_rng(3)
    parts = PartSums(budget=60_000)
    few, many = ENCODER.encode(drawn(rng, 1)), ENCODER.encode(drawn(rng, 100))
    options = {"partitions": 4, "dtype": np.float32, "weights": np.ones(3)}
    with parts.used():
        while parts.held < 50_000:
            order_sums(few, ENCODER.encode(drawn(rng, 12)), 0.5, 3, **options)
        new = ENCODER.encode(drawn(rng, 5))
        # Room for all parts that have a name would take more than a megabyte.
        sums, _ = order_sums(many, new, 0.5, 3, **options)
    np.testing.assert_allclose(sums, order_sums(many, new, 0.5, 3, weights=np.ones(3), partitions=4)[0], rtol=1e-5)
    assert parts.held <= 60_000


def test_sums_with_lists_that_are_gone_are_dropped() -> None:
    rng = np.random.default_rng(2)
    new = ENCODER.encode(drawn(rng, 5))
    parts, held = PartSums(), []
    with parts.used():
        for _ in range(3 * remembered.MOST_OTHERS):
            known = ENCODER.encode(drawn(rng, 6))
            sums, _ = order_sums(known, new, 0.5, 2, partitions=2, dtype=np.float32)
            np.testing.assert_allclose(sums, order_sums(known, new, 0.5, 2, partitions=2)[0], rtol=1e-5)
            held.append(parts.held)
    growing = np.diff(held)
    assert (growing[: remembered.MOST_OTHERS - 1] > 0).all()
    assert not growing[remembered.MOST_OTHERS - 1 :].any()


def test_those_met_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    new = ENCODER.encode(drawn(rng, 5))
    known = [ENCODER.encode(drawn(rng, 6)) for _ in range(remembered.MOST_OTHERS + 1)]
    parts = PartSums()
    calls = counted(monkeypatch)

    def computed(place: int) -> bool:
        calls.clear()
        order_sums(known[place], new, 0.5, 2, partitions=2, dtype=np.float32)
        return bool(calls)

    with parts.used():
        assert all(computed(place) for place in range(remembered.MOST_OTHERS))
        assert not computed(0)
        assert computed(remembered.MOST_OTHERS)
        assert not computed(0)
        assert computed(1)


def test_weights_of_the_same_bytes_and_another_shape_are_others() -> None:
    known, new = ENCODER.encode(["AABBCCDD", "ABCDABCD"]), ENCODER.encode(["AAAABBBB", "ABABCCCC"])
    parts = PartSums()
    for order, weights in ((4, np.array([1.0, 0, 0, 1])), (2, np.eye(2)), (4, np.array([[1.0, 0, 0, 1]]))):
        with parts.used():
            sums, _ = order_sums(known, new, 0.5, order, weights=weights, partitions=2, dtype=np.float32)
            own, _ = self_order_sums(new, 0.5, order, weights=weights, partitions=2)
        np.testing.assert_allclose(
            sums, order_sums(known, new, 0.5, order, weights=weights, partitions=2)[0], rtol=1e-6
        )
        np.testing.assert_allclose(own, self_order_sums(new, 0.5, order, weights=weights, partitions=2)[0], rtol=1e-12)


def test_threads_may_share_it() -> None:
    rng = np.random.default_rng(4)
    known = ENCODER.encode(drawn(rng, 6))
    lists = [ENCODER.encode(drawn(rng, 8)) for _ in range(8)]
    expected = [order_sums(known, new, 0.5, 2, partitions=3)[0] for new in lists]
    parts = PartSums(budget=20_000)

    def wrong(thread: int) -> int:
        found = 0
        for turn in range(150):
            place = (turn * (thread + 1)) % len(lists)
            with parts.used():
                sums, _ = order_sums(known, lists[place], 0.5, 2, partitions=3, dtype=np.float32, threads=1)
            found += not np.allclose(sums, expected[place], rtol=1e-5)
        return found

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(wrong, range(4))) == 0
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_begin_with_nothing(copied: Callable[[PartSums], PartSums]) -> None:
    known, new = ENCODER.encode(["AABBCCDD", "ABCDABCD"]), ENCODER.encode(["AAAABBBB", "ABABCCCC"])
    parts = PartSums(budget=12_345)
    with parts.used():
        order_sums(known, new, 0.5, 2, partitions=2, dtype=np.float32)
    again = copied(parts)
    assert parts.held
    assert again.held == 0
    assert again.budget == 12_345


def test_what_is_wrong_is_refused_as_ever() -> None:
    new = ENCODER.encode(["AAAABBBB", "ABABCCCC"])
    with PartSums().used():
        with pytest.raises(InputError, match="unknown engine"):
            order_sums(new, ENCODER.encode([]), 0.5, 2, partitions=2, dtype=np.float32, engine="abacus")
        with pytest.raises(InputError, match="unknown engine"):
            self_order_sums(new, 0.5, 2, partitions=2, engine="abacus")
        self_order_sums(new, 0.5, 2, partitions=2)
        with pytest.raises(InputError, match=r"partitions is 2\.0"):
            self_order_sums(new, 0.5, 2, partitions=2.0)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="partitions is 9, but string 0 has 8 symbols"):
            order_sums(new, ENCODER.encode(["AAAABBBBCCCC"]), 0.5, 2, partitions=9, dtype=np.float32)


def test_sums_beyond_single_precision_are_infinite_without_a_warning() -> None:
    long = ENCODER.encode(["A" * 400, "A" * 399])
    other = ENCODER.encode(["A" * 400])
    with PartSums().used(), warnings.catch_warnings():
        warnings.simplefilter("error")
        double, _ = order_sums(long, other, 1.0, 40, weights=np.ones(40), partitions=2)
        single, _ = order_sums(long, other, 1.0, 40, weights=np.ones(40), partitions=2, dtype=np.float32)
    assert np.isfinite(double).all()
    assert np.isinf(single).all()


def test_no_strings_and_empty_parts() -> None:
    known = ENCODER.encode(["ABCD", "AB"])
    parts = PartSums()
    with parts.used():
        assert order_sums(known, ENCODER.encode([]), 0.5, 2, partitions=2, dtype=np.float32)[0].shape == (2, 2, 0)
        assert self_order_sums(ENCODER.encode([]), 0.5, 2, partitions=2)[0].shape == (2, 0)


def test_parts_of_the_first_population_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    gp = StringGP(SubsequenceKernel(3, partitions=4), restarts=1)
    gp.fit(StringSpace("ABCD", 16).sample(20, rng), rng.standard_normal(20), rng=rng)
    scorer = GaussianScoring(gp, LogExpectedImprovement(), rng=rng).scorer(["AAAABBBBCCCCDDDD", "DDDDCCCCBBBBAAAA"])
    found: list[int] = []
    of_store = remembered._Store.missing

    def counting(self: remembered._Store, numbers: remembered.Indices) -> tuple[remembered.Indices, remembered.Indices]:
        missing = of_store(self, numbers)
        if len(self.shape) == 2:
            found.append(len(missing[0]))
        return missing

    monkeypatch.setattr(remembered._Store, "missing", counting)
    child, other = scorer.scores(["AAAACCCCCCCCAAAA", "AAAACCCCCCCCBBBB"])
    assert found == [1]
    again = GaussianScoring(gp, LogExpectedImprovement(), rng=rng).scorer(["DDDDDDDDDDDDDDDD"])
    np.testing.assert_allclose(again.scores(["AAAACCCCCCCCAAAA", "AAAACCCCCCCCBBBB"]), [child, other], rtol=1e-3)


def test_a_search_uses_them_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> tuple[list[str], list[float]]:
        space = StringSpace("ABCD", 24)
        strings = space.sample(12, np.random.default_rng(0))
        optimizer = Optimizer(space, surrogate=StringGP(SubsequenceKernel(3, partitions=4)), initial=12, seed=1)
        optimizer.tell(strings, [float(string[:12].count("A")) for string in strings])
        found = optimizer.ask(2)
        return found, [string[:12].count("A") for string in found]

    used: list[int] = []
    pairs = PartSums.pairs

    def counting(self: PartSums, *arguments: object) -> object:
        used.append(1)
        return pairs(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PartSums, "pairs", counting)
    with_parts = asked()
    assert len(used) > 10
    monkeypatch.setattr(PartSums, "has_room", lambda *_: False)
    assert asked() == with_parts


def test_features_of_known_parts_give_the_sums_that_are_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    encoder = Encoder(alphabet=Alphabet("ABCDE"))
    known = encoder.encode(drawn(rng, 40, 180, 200))
    children = drawn(rng, 12, 180, 200)
    children[3] = children[3][:50] + "E" + children[3][51:]  # which no known string has
    new = encoder.encode(children)
    made: list[str] = []
    of_features = importlib.import_module("seqopt.kernels.engines.features")

    class Counted(of_features.KnownParts):  # type: ignore[misc,name-defined]
        def __init__(self, *arguments: object) -> None:
            made.append("features")
            super().__init__(*arguments)

    monkeypatch.setattr(of_features, "KnownParts", Counted)
    for engine, features in (("auto", 1), ("features", 1), ("pairs", 0)):
        parts = PartSums()
        options = {"weights": WEIGHTS, "partitions": 4, "threads": 1, "engine": engine}
        made.clear()
        with parts.used():
            for strings in (new, new.take(np.arange(5)), encoder.encode(drawn(rng, 3, 180, 200))):
                single, _ = order_sums(known, strings, 0.6, 3, dtype=np.float32, **options)
                expected, _ = order_sums(known, strings, 0.6, 3, **options)
                np.testing.assert_allclose(single, expected, rtol=2e-6)
                vector, _ = order_sums(known, strings, 0.6, 3, dtype=np.float32, **options | {"weights": WEIGHTS[0]})
                np.testing.assert_allclose(vector, expected[0], rtol=2e-6)
        assert len(made) == features, engine
        # A quarter of what it may hold is less than the features: these are left out then, and sums are as right.
        small = PartSums(2_000_000)
        made.clear()
        with small.used():
            single, _ = order_sums(known, new, 0.6, 4, weights=np.ones(4), partitions=40, dtype=np.float32)
            np.testing.assert_allclose(
                single, order_sums(known, new, 0.6, 4, weights=np.ones(4), partitions=40)[0], rtol=2e-6
            )
        assert not made
        assert small.held <= 2_000_000


def test_features_are_held_with_the_sums_and_dropped_with_their_strings() -> None:
    rng = np.random.default_rng(4)
    parts = PartSums()
    options = {"weights": np.ones(3), "partitions": 4, "dtype": np.float32, "engine": "features"}
    held = []
    with parts.used():
        for _ in range(remembered.MOST_OTHERS + 3):
            known = ENCODER.encode(drawn(rng, 40, 180, 200))
            order_sums(known, ENCODER.encode(drawn(rng, 2, 180, 200)), 0.6, 3, **options)
            held.append(parts.held)
    features = 40 * 4 * (4 + 16 + 64) * 4
    assert held[0] > features
    # Names of parts stay; sums and features of lists that were met before the last four do not.
    grown = np.diff(held)
    assert (grown[: remembered.MOST_OTHERS - 1] > features).all()
    assert (grown[remembered.MOST_OTHERS - 1 :] < features / 2).all()


def test_features_of_several_decays_take_no_more_than_their_share() -> None:
    rng = np.random.default_rng(5)
    known = [ENCODER.encode(drawn(rng, 40, 180, 200)) for _ in range(3)]
    features = 40 * 4 * (4 + 16 + 64) * 4
    parts = PartSums(remembered.DERIVED_SHARE * 2 * features)
    options = {"weights": np.ones(3), "partitions": 4, "engine": "features"}
    kept = []
    with parts.used():
        for _ in range(3):
            new = ENCODER.encode(drawn(rng, 4, 180, 200))
            for gap in (0.3, 0.6):
                for others in known:
                    single, _ = order_sums(others, new, gap, 3, dtype=np.float32, **options)
                    np.testing.assert_allclose(single, order_sums(others, new, gap, 3, **options)[0], rtol=2e-6)
                    assert parts.held <= parts.budget
            kept.append(parts._derived_bytes)
    # Those that came first, all the time: none pushes out another.
    assert kept == [2 * features] * 3


def test_new_parts_that_may_overflow_are_left_to_the_dynamic_program() -> None:
    rng = np.random.default_rng(6)
    encoder = Encoder(alphabet=Alphabet("ab"))
    known = encoder.encode(["".join(rng.choice(list("ab"), 120)) for _ in range(60)])
    new = encoder.encode(["a" * 40_000 + "b" * 40_000, "ab" * 60])
    options = {"weights": np.eye(9)[:1], "partitions": 2}
    with PartSums().used():
        single, _ = order_sums(known, new, 1.0, 9, dtype=np.float32, **options)
    np.testing.assert_allclose(single, order_sums(known, new, 1.0, 9, **options)[0], rtol=2e-6)


def test_many_new_parts_take_no_more_memory_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    of_features = importlib.import_module("seqopt.kernels.engines.features")
    rng = np.random.default_rng(7)
    known, new = ENCODER.encode(drawn(rng, 20, 90, 100)), ENCODER.encode(drawn(rng, 30, 90, 100))
    made: list[int] = []
    filled = of_features._features

    def counting(strings: EncodedStrings, *arguments: object) -> np.ndarray:
        made.append(len(strings))
        return filled(strings, *arguments)

    options = {"weights": WEIGHTS, "partitions": 3, "engine": "features"}
    expected, _ = order_sums(known, new, 0.6, 3, **options)
    monkeypatch.setattr(of_features, "_features", counting)
    monkeypatch.setattr(of_features, "NEW_BYTES", 7 * 4 * (84 + 3 * 20))
    with PartSums().used():
        single, _ = order_sums(known, new, 0.6, 3, dtype=np.float32, **options)
    np.testing.assert_allclose(single, expected, rtol=2e-6)
    assert made == [20] * 3 + [7] * 12 + [6]
