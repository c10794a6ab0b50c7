"""The kernel for libraries of variants at a few sites."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import torch

from seqopt.encoding import EncodedStrings, Encoder, VaryingPositions
from seqopt.errors import InputError
from seqopt.kernels import HammingKernel, SitesKernel, SubstitutionKernel, bind_symbols
from seqopt.kernels.substitution import substitution_matrix, symbol_distances
from seqopt.utils.config import from_config

SCORES, SYMBOLS = substitution_matrix("blosum62")
DISTANCES = symbol_distances(SCORES)


def strings(count: int, length: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(SYMBOLS), length)) for _ in range(count)]


def variants(count: int, length: int, seed: int = 0) -> list[str]:
    """Of one string, most with one or two substitutions, two of them equal: they agree at most positions."""
    rng = np.random.default_rng(seed)
    background = strings(1, length, seed)[0]
    found = [background, background]
    while len(found) < count:
        symbols = list(background)
        for position in rng.integers(length, size=2):
            symbols[position] = str(rng.choice(list(SYMBOLS)))
        found.append("".join(symbols))
    return found


def by_definition(a: str, b: str, scales: list[float], similarity: float) -> float:
    total = 0.0
    for one, other, scale in zip(a, b, scales, strict=True):
        alike = DISTANCES[SYMBOLS.index(one), SYMBOLS.index(other)]
        total += ((1 - similarity) * (one != other) + similarity * alike) / scale
    return float(np.exp(-total))


def test_covariances_are_those_of_the_formula_by_every_path() -> None:
    scales, found = [0.5, 2.0, 9.0], strings(12, 3)
    kernel, encoder = SitesKernel(3, similarity=0.3, lengthscale=torch.tensor(scales)).double(), Encoder()
    bind_symbols(kernel, encoder)
    encoded = encoder.encode(found)
    expected = np.array([[by_definition(a, b, scales, 0.3) for b in found] for a in found])
    rows = encoded.to_tensor(width=5)
    np.testing.assert_allclose(kernel.cross(encoded), expected, atol=1e-7)
    np.testing.assert_allclose(kernel(rows).to_dense().detach(), expected, atol=1e-7)
    np.testing.assert_allclose(kernel(rows[:4], rows[4:]).to_dense().detach(), expected[:4, 4:], atol=1e-7)
    np.testing.assert_allclose(kernel(rows, rows.flip(0), diag=True).detach(), np.diag(expected[:, ::-1]), atol=1e-7)
    assert kernel.cross(encoded, dtype=np.float32).dtype == np.float32


def test_with_equal_lengthscales_and_no_similarity_it_counts_substitutions() -> None:
    encoded = Encoder().encode(strings(10, 6))
    np.testing.assert_allclose(
        SitesKernel(6, None, lengthscale=2.0).cross(encoded), HammingKernel(2.0).cross(encoded), atol=1e-6
    )


@pytest.mark.parametrize("matrix", ["blosum62", None])
def test_variants_are_compared_where_they_differ(matrix: str | None) -> None:
    """The Gram matrix of strings that agree at most positions, beside the other paths and the formula."""
    scales, found = np.linspace(0.3, 9.0, 14).tolist(), variants(11, 14)
    similarity = 0.3 if matrix else 0.0
    kernel = SitesKernel(14, matrix, similarity=similarity, lengthscale=torch.tensor(scales)).double()
    encoder = Encoder()
    bind_symbols(kernel, encoder)
    rows = encoder.encode(found).to_tensor(width=17)
    gram = kernel.forward(rows, rows)
    expected = np.array([[by_definition(a, b, scales, similarity) for b in found] for a in found])
    np.testing.assert_allclose(gram.detach(), expected, atol=1e-7)
    np.testing.assert_allclose(gram.detach(), kernel.forward(rows, rows.flip(0)).flip(1).detach(), rtol=1e-13)
    # A batch of lengthscales has another path, and must not be given what was kept for a single one.
    batched = SitesKernel(14, matrix, similarity=similarity, batch_shape=torch.Size([2])).double()
    bind_symbols(batched, encoder)
    batched.lengthscale = torch.tensor(scales).expand(2, 1, 14)
    np.testing.assert_allclose(batched.forward(rows, rows).detach()[1], gram.detach(), rtol=1e-6)


def test_variants_by_the_thousand_are_compared_in_little_memory() -> None:
    encoder, kernel = Encoder(), SitesKernel(200).double()
    bind_symbols(kernel, encoder)
    encoded = encoder.encode(variants(300, 200))
    rows = encoded.to_tensor()
    tracemalloc.start()
    found = kernel.forward(rows, rows)
    found.sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # They are compared in several blocks of rows.
    np.testing.assert_allclose(found.detach(), kernel.cross(encoded), rtol=1e-12)
    assert peak < 100e6  # all positions of all pairs take 288 MB


@pytest.mark.parametrize("counts", [(3, 9), (30, 5), (0, 4), (4, 0)])
@pytest.mark.parametrize("symbols", ["AC", SYMBOLS], ids=["few symbols", "many"])
@pytest.mark.parametrize("small", [False, True], ids=["one block", "blocks"])
@pytest.mark.parametrize("matrix", ["blosum62", None])
def test_exponents_are_added_up_in_any_order(
    counts: tuple[int, int], symbols: str, small: bool, matrix: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the rows, where these have few symbols, or of the columns; symbols are found by flags, or by sorting."""
    if small:
        for name, value in (("BLOCK_STRINGS", 2), ("BLOCK_EXPONENTS", 8), ("MOST_FLAGS", 0)):
            monkeypatch.setattr(f"seqopt.kernels.sites.{name}", value)
    rng = np.random.default_rng(0)
    rows, columns = (
        ["W" + "".join(rng.choice(list(letters), 4)) for _ in range(count)]
        for letters, count in zip((symbols, SYMBOLS), counts, strict=True)
    )
    scales, similarity = [0.1, 0.5, 1.0, 2.0, 8.0], 0.3 if matrix else 0.0
    kernel, encoder = (
        SitesKernel(5, matrix, similarity=similarity, lengthscale=torch.tensor(scales)).double(),
        Encoder(),
    )
    bind_symbols(kernel, encoder)
    if matrix is None:
        expected = [
            [
                np.exp(-sum(1 / scale for x, y, scale in zip(one, other, scales, strict=True) if x != y))
                for other in columns
            ]
            for one in rows
        ]
    else:
        expected = [[by_definition(one, other, scales, similarity) for other in columns] for one in rows]
    found = kernel.cross(encoder.encode(rows), encoder.encode(columns))
    np.testing.assert_allclose(found, np.array(expected).reshape(counts), rtol=1e-6)


def test_each_of_a_batch_has_its_own_similarity() -> None:
    encoder, kernel = Encoder(), SitesKernel(3, lengthscale=2.0, batch_shape=torch.Size([2])).double()
    kernel.similarity = torch.tensor([0.1, 0.9])[:, None, None]
    bind_symbols(kernel, encoder)
    found, both = strings(5, 3), kernel.cross(encoder.encode(strings(5, 3)))
    for values, similarity in zip(both, (0.1, 0.9), strict=True):
        expected = [[by_definition(one, other, [2.0] * 3, similarity) for other in found] for one in found]
        np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_without_a_matrix_symbols_are_never_alike() -> None:
    kernel, encoded = SitesKernel(3, None, lengthscale=2.0), Encoder().encode(["ACD", "ACE", "CCE"])
    kernel.similarity = 0.5  # half of nothing
    rows = encoded.to_tensor()
    np.testing.assert_allclose(kernel.cross(encoded), kernel(rows).to_dense().detach(), rtol=1e-6)


def test_a_block_holds_so_many_exponents_whatever_symbols_there_are() -> None:
    columns = EncodedStrings(np.arange(1, 40_001).reshape(2000, 20).astype(np.uint32), np.full(2000, 20, np.int32))
    rows, kernel = columns.take(np.arange(100)), SitesKernel(20, None)
    tracemalloc.start()
    kernel.cross(rows, columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # all exponents of the rows take 32 MB, and as much three times more on the way


def test_positions_with_symbols_of_their_own_are_compared_in_little_memory() -> None:
    """Encoded apart from their background, a hundred positions have two thousand symbols."""
    rng = np.random.default_rng(0)
    background = strings(1, 260)[0]
    pool = []
    for position in range(100):
        pool += [background[:position] + symbol + background[position + 1 :] for symbol in SYMBOLS[:20]]
    encoder = VaryingPositions(Encoder(), background, list(range(100)))
    kernel = SitesKernel(100, lengthscale=torch.from_numpy(rng.uniform(1.0, 5.0, 100)))
    bind_symbols(kernel, encoder)
    encoded = encoder.encode(pool)
    some = encoded.take(np.arange(0, 2000, 97))
    tracemalloc.start()
    found = kernel.cross(some, encoded)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # a table of all symbols at each position takes 3.2 GB
    scales = kernel.lengthscale[0].tolist()
    for row in (0, 7, 20):
        expected = [by_definition(pool[97 * row][:100], other[:100], scales, 0.5) for other in pool[::131]]
        np.testing.assert_allclose(found[row, ::131], expected, atol=1e-6)


@pytest.mark.parametrize("found", [strings(6, 3), variants(6, 9)], ids=["strings", "variants"])
def test_gradients_are_those_of_differences(found: list[str]) -> None:
    kernel, encoder = SitesKernel(len(found[0]), similarity=0.4).double(), Encoder()
    bind_symbols(kernel, encoder)
    rows = encoder.encode(found).to_tensor()
    weights = torch.from_numpy(np.random.default_rng(1).standard_normal((6, 6)))
    (weights * kernel.forward(rows, rows)).sum().backward()
    for parameter in (kernel.raw_lengthscale, kernel.raw_similarity):
        for place in np.ndindex(*parameter.shape):
            ends = []
            for step in (1e-5, -1e-5):
                with torch.no_grad():
                    parameter[place] += step
                    ends.append(float((weights * kernel.forward(rows, rows)).sum()))
                    parameter[place] -= step
            assert parameter.grad is not None
            assert float(parameter.grad[place]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-8)


def test_symbols_are_read_whatever_their_numbers() -> None:
    """Numbers of an open alphabet, and of positions apart from their background, mean the same amino acids."""
    variants = ["MK" + one + "LL" + other + "GG" for one, other in strings(9, 2)]
    short = [string[2] + string[5] for string in variants]
    own = SubstitutionKernel(lengthscale=1.0)
    expected = own.cross(own.encoder().encode(short))
    for encoder, texts in (
        (Encoder(), short),
        (VaryingPositions(Encoder(), variants[0], [2, 5]), variants),
        (VaryingPositions(Encoder(), variants[0], [2, 5], positioned=False), variants),
    ):
        kernel = SubstitutionKernel(lengthscale=1.0)
        bind_symbols(kernel, encoder)
        np.testing.assert_allclose(kernel.cross(encoder.encode(texts)), expected, atol=1e-12)


def test_an_alphabet_that_grows_is_read_by_copies_of_the_kernel_too() -> None:
    import copy

    encoder, kernel = Encoder(), SubstitutionKernel(lengthscale=1.0)
    bind_symbols(kernel, encoder)
    copied = copy.deepcopy(kernel)
    encoded = encoder.encode(["IX", "LX", "I-"])
    found = copied.cross(encoded)
    assert found[0, 1] == pytest.approx(float(np.exp(-DISTANCES[SYMBOLS.index("I"), SYMBOLS.index("L")])))
    # What the matrix does not list is like nothing but itself.
    assert found[0, 2] == pytest.approx(float(np.exp(-1.0)))


def test_a_gram_matrix_is_positive_semi_definite() -> None:
    kernel, encoder = SitesKernel(2, lengthscale=0.3, similarity=1.0), Encoder()
    bind_symbols(kernel, encoder)
    every = ["".join(pair) for pair in itertools.product("ACDEFGHIKLX-", repeat=2)]
    assert np.linalg.eigvalsh(kernel.cross(encoder.encode(every))).min() > -1e-10


def test_it_is_written_down_and_made_again() -> None:
    kernel = SitesKernel(3, similarity=0.25, lengthscale=torch.tensor([1.0, 2.0, 4.0]))
    made = from_config(kernel.config())
    assert made.config() == kernel.config()
    encoded = Encoder().encode(strings(4, 3))
    np.testing.assert_allclose(made.cross(encoded), kernel.cross(encoded))
    assert not SitesKernel(3, None).raw_similarity.requires_grad


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"sites": 0}, "sites is 0"),
        ({"sites": 2, "similarity": 1.5}, "must lie in"),
        ({"sites": 2, "matrix": "pam"}, "pam"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        SitesKernel(**arguments)  # type: ignore[arg-type]


def test_strings_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="compares strings of 3 symbols, and these have 4"):
        SitesKernel(3).cross(Encoder().encode(["ACDE"]))


def test_pairs_are_compared_once_and_say_what_all_pairs_say():
    encoder, rng = Encoder(), np.random.default_rng(0)
    for count, matrix in ((2, "blosum62"), (7, "blosum62"), (7, None)):
        kernel = SitesKernel(5, matrix)
        bind_symbols(kernel, encoder)
        x = encoder.encode(["".join(rng.choice(list("ACDEFG"), 5)) for _ in range(count)]).to_tensor()
        parts = kernel.differences(x)
        assert parts.pairs is not None
        assert len(parts.differ) == count * (count - 1) // 2
        whole = kernel._by_site(x, x, False, sparse_too=False).reshape(count * count, 10)
        weights = rng.random((2, 5))
        expected = (whole @ torch.from_numpy(weights.reshape(-1))).reshape(count, count)
        np.testing.assert_allclose(
            parts.exponents(*weights),
            expected if matrix else whole[:, :5].numpy().reshape(count, count, 5) @ weights[0],
            atol=1e-12,
        )
        gradient = rng.standard_normal((count, count))
        slopes = whole.T.numpy() @ gradient.reshape(-1)
        np.testing.assert_allclose(np.concatenate(parts.by_weight(gradient)), slopes, atol=1e-12)


def test_a_batch_of_kernels_says_where_strings_differ():
    encoder = Encoder()
    x = encoder.encode(["A" * 8, "A" * 7 + "C", "A" * 8]).to_tensor()
    kernel = SitesKernel(8, "blosum62", batch_shape=torch.Size([2]))
    bind_symbols(kernel, encoder)
    kernel(x).to_dense()
    assert kernel.differences(x).exponents(np.ones(8), np.zeros(8)).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
