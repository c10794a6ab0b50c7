"""Prefixes and endings that strings share: the plan by enumeration, the sums against the reference engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import EncodedStrings, Encoder
from seqopt.kernels.engines import cpu, order_sums, self_order_sums
from seqopt.kernels.engines.sharing import share

REFERENCE = {"engine": "reference", "derivative": True}


def mutants(count, length, mutations, seed, alphabet="ACDEFGHIKL"):
    """Substitution variants of one parent, the parent first."""
    rng = np.random.default_rng(seed)
    parent = rng.choice(list(alphabet), length)
    found = [parent]
    for _ in range(count - 1):
        variant = parent.copy()
        places = rng.choice(length, rng.integers(1, mutations + 1), replace=False)
        variant[places] = rng.choice(list(alphabet), len(places))
        found.append(variant)
    return ["".join(variant) for variant in found]


@st.composite
def related(draw, most=8):
    """Strings of prefixes, middles and endings from short lists, so that many share either end; some are empty."""
    alphabet = draw(st.sampled_from(["a", "ab", "abcd"]))
    pieces = st.lists(st.text(alphabet, max_size=4), min_size=1, max_size=3)
    parts = [draw(pieces) for _ in range(3)]
    whole = st.tuples(*map(st.sampled_from, parts)).map("".join)
    return draw(st.lists(whole, min_size=1, max_size=most))


def encoded(*lists):
    encoder = Encoder()
    return [encoder.encode(strings, width=max(max(map(len, strings)), 1)) for strings in lists]


def assert_equal_sums(actual, expected, tolerance=1e-12):
    for values, oracle in zip(actual, expected, strict=True):
        np.testing.assert_allclose(values, oracle, rtol=tolerance, atol=tolerance * 1e-3)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    related(),
    related(),
    st.sampled_from([1, 3]),
    st.sampled_from([1e-4, 0.4, 1.0]),
    st.sampled_from([1, 1 << 12, 1 << 24]),
    st.sampled_from([1, 2]),
)
def test_sums_and_derivatives_are_those_of_the_reference(first, second, order, gap, memory, threads):
    a, b = encoded(first, second)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "THREADING_COST", 0)
        patch.setattr(cpu, "PIECE_COST", 1)
        for name in ("PREFIX_BYTES", "ENDING_BYTES", "WAITING_BYTES"):
            patch.setattr(cpu, name, memory)
        for rows, columns in ((a, b), (b, a), (a, None)):
            actual = order_sums(rows, columns, gap, order, derivative=True, engine="shared", threads=threads)
            assert_equal_sums(actual, order_sums(rows, columns, gap, order, **REFERENCE))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variants_of_one_parent(dtype):
    (variants,) = encoded(mutants(30, 35, 4, seed=0))
    expected = order_sums(variants, None, 0.7, 3, **REFERENCE)
    actual = order_sums(variants, None, 0.7, 3, derivative=True, engine="shared", dtype=dtype)
    assert_equal_sums(actual, expected, 1e-12 if dtype == np.float64 else 1e-4)
    assert all(part.dtype == dtype for part in actual)
    for part in actual:
        np.testing.assert_array_equal(part, part.transpose(0, 2, 1))
    own, _ = self_order_sums(variants, 0.7, 3, dtype=dtype, engine="shared")
    np.testing.assert_allclose(
        np.diagonal(actual[0], axis1=1, axis2=2), own, rtol=1e-12 if dtype == np.float64 else 1e-4
    )


def test_derivatives_are_those_of_finite_differences():
    pool, few = encoded(mutants(30, 40, 3, seed=1), mutants(5, 40, 3, seed=2))
    step = 1e-5
    _, slopes = order_sums(pool, few, 0.6, 3, derivative=True, engine="shared")
    above, below = (order_sums(pool, few, 0.6 + sign * step, 3, engine="shared")[0] for sign in (1, -1))
    np.testing.assert_allclose(slopes, (above - below) / (2 * step), rtol=1e-7, atol=1e-6)


def test_weights_memory_and_threads_change_no_bit(monkeypatch):
    pool, few = encoded(mutants(60, 30, 3, seed=3), mutants(11, 30, 3, seed=4))
    monkeypatch.setattr(cpu, "THREADING_COST", 0)
    monkeypatch.setattr(cpu, "PIECE_COST", 1)
    weights = np.random.default_rng(0).uniform(size=(2, 3))
    options = {"weights": weights, "derivative": True, "engine": "shared"}
    alone = order_sums(pool, few, 0.5, 3, threads=1, **options)
    for memory in (1, 1 << 24):
        # Fewer prefixes are kept, so more rows are computed again; endings, which change rounding, stay.
        monkeypatch.setattr(cpu, "PREFIX_BYTES", memory)
        monkeypatch.setattr(cpu, "WAITING_BYTES", memory)
        for threads in (1, 3):
            for part, expected in zip(order_sums(pool, few, 0.5, 3, threads=threads, **options), alone, strict=True):
                np.testing.assert_array_equal(part, expected)


def test_symbols_beyond_a_byte():
    rng = np.random.default_rng(5)
    tokens = np.tile(rng.choice([1, 256, 513, 65_534], 12), (20, 1)).astype(np.uint16)
    tokens[np.arange(20), rng.integers(12, size=20)] = 257
    strings = EncodedStrings.from_tokens(tokens)
    assert_equal_sums(
        order_sums(strings, None, 0.5, 3, derivative=True, engine="shared"),
        order_sums(strings, None, 0.5, 3, **REFERENCE),
    )


@settings(max_examples=60, deadline=None)
@given(related(most=25))
def test_without_endings_there_are_as_many_rows_as_distinct_prefixes(strings):
    (found,) = encoded(strings)
    plan = share(found, 0)
    prefixes = {string[:end] for string in strings for end in range(1, len(string) + 1)}
    assert (plan.walk.stops - plan.walk.commons).sum() == len(prefixes)
    assert sorted(plan.walk.strings) == list(range(len(strings)))
    assert not plan.endings_walk.strings.size
    assert (plan.endings == -1).all()


@settings(max_examples=60, deadline=None)
@given(related(most=25), st.sampled_from([1, 3, 1000]))
def test_every_string_is_read_once_and_its_ending_is_shared(strings, most):
    (found,) = encoded(strings)
    plan = share(found, most)
    walk, endings = plan.walk, plan.endings_walk
    assert len(endings.strings) <= most
    texts = [strings[s][len(strings[s]) - stop :] for s, stop in zip(endings.strings, endings.stops, strict=True)]
    assert len(set(texts)) == len(texts)
    for string, stop, ending in zip(walk.strings, walk.stops, plan.endings, strict=True):
        assert strings[string] == strings[string][:stop] + (texts[ending] if ending >= 0 else "")
    for text in texts:
        assert sum(string.endswith(text) for string in strings) >= 2
    for one in (walk, endings):
        read = [strings[s] if one is walk else strings[s][::-1] for s in one.strings]
        for i in range(1, len(read)):
            common = one.commons[i]
            assert common <= min(one.stops[i], one.stops[i - 1])
            assert read[i][:common] == read[i - 1][:common]


def test_the_rows_of_variants_are_few_and_those_of_random_strings_are_not():
    rng = np.random.default_rng(6)
    variants, unrelated = encoded(
        mutants(120, 290, 4, seed=7), ["".join(rng.choice(list("ACDEFGHIKL"), 60)) for _ in range(120)]
    )
    assert share(variants, 1000).rows < 0.45 * share(variants, 1000).cells
    assert share(variants, 1000).rows < 0.7 * share(variants, 0).rows
    assert share(unrelated, 1000).rows > 0.95 * share(unrelated, 1000).cells
    # The estimate that `cpu` and `auto` decide by.
    assert cpu.saving(variants, None, 5, derivative=False) < 0.45
    assert cpu.saving(unrelated, None, 5, derivative=False) == 1.0
    assert cpu.saving(unrelated, variants, 5, derivative=True) < 0.45


@pytest.mark.parametrize("derivative", [False, True])
def test_cpu_gives_what_the_cheaper_of_both_gives(derivative):
    rng = np.random.default_rng(8)
    variants, unrelated = encoded(
        mutants(60, 150, 2, seed=9), ["".join(rng.choice(list("ACDEFGHIKL"), 40)) for _ in range(20)]
    )
    for strings, other in ((variants, "shared"), (unrelated, "pairs")):
        chosen, same = (
            order_sums(strings, None, 0.5, 3, derivative=derivative, engine=engine) for engine in ("cpu", other)
        )
        for part, expected in zip(chosen, same, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_no_strings_and_empty_strings():
    none, empty, some = EncodedStrings.from_tokens(np.zeros((0, 4), dtype=np.uint8)), *encoded(["", ""], ["ab", "c"])
    assert order_sums(none, some, 0.5, 3, engine="shared")[0].shape == (3, 0, 2)
    for rows, columns in ((empty, some), (some, empty), (empty, None)):
        assert not order_sums(rows, columns, 0.5, 3, engine="shared")[0].any()
