"""Shares of symbols and features in covariances, against sums over all sub-sequences and features one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from seqopt.encoding import Encoder, FeatureEncoder, FeatureRows, Fragprints, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import MinMaxKernel, OneHotKernel, SubsequenceKernel, TanimotoKernel
from seqopt.kernels.shares import feature_shares, masked, symbol_shares

SMILES = ["CC(=O)Nc1ccc(O)cc1", "CCO", "c1ccncc1C(F)(F)F", "C[C@H](N)C(=O)O", "CCCCCCCC"]


def by_listing(a: str, b: str, order: int, match: float, gap: float) -> np.ndarray:
    """Each pair of equal sub-sequences, in equal shares to the symbols of the first one."""
    found = np.zeros(len(a))
    for n in range(1, order + 1):
        for mine in combinations(range(len(a)), n):
            for theirs in combinations(range(len(b)), n):
                if [a[i] for i in mine] == [b[j] for j in theirs]:
                    skipped = mine[-1] - mine[0] + theirs[-1] - theirs[0] + 2 - 2 * n
                    found[list(mine)] += match ** (2 * n) * gap**skipped / n
    return found


@pytest.mark.parametrize("normalize", [True, False])
def test_symbols_share_what_every_pair_of_sub_sequences_adds(normalize: bool) -> None:
    kernel = SubsequenceKernel(order=3, match_decay=0.7, gap_decay=0.6, normalize=normalize)
    encoded = Encoder().encode(["abcab", "acb", "bbaac", "ddd"])
    shares = symbol_shares(kernel, encoded.take([0]), encoded)
    for index, other in enumerate(["abcab", "acb", "bbaac", "ddd"]):
        expected = by_listing("abcab", other, 3, 0.7, 0.6)
        if normalize:
            own = [by_listing(text, text, 3, 0.7, 0.6).sum() for text in ("abcab", other)]
            expected = expected / np.sqrt(own[0] * own[1])
        np.testing.assert_allclose(shares[:, index], expected, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        SubsequenceKernel(order=4),
        SubsequenceKernel(order=3, partitions=2),
        SubsequenceKernel(order=2, order_weights=[0.3, 0.9]),
        SubsequenceKernel(order=3, match_decay=torch.tensor([0.4, 0.8]), gap_decay=torch.tensor([0.3, 0.9]),
                          batch_shape=torch.Size([2])),
        OneHotKernel(),
    ],
    ids=lambda kernel: repr(kernel)[:40],
)  # fmt: skip
def test_shares_of_symbols_sum_to_the_covariance(kernel: SubsequenceKernel | OneHotKernel) -> None:
    rng = np.random.default_rng(0)
    encoded = Encoder().encode(["".join(rng.choice(list("ACGT"), 12)) for _ in range(6)])
    first, others = encoded.take([0]), encoded.take(slice(1, None))
    shares = symbol_shares(kernel, first, others)
    assert shares.shape == (*kernel.batch_shape, 12, 5)
    np.testing.assert_allclose(shares.sum(-2), kernel.cross(first, others)[..., 0, :], atol=1e-12)


def test_a_masked_symbol_matches_nothing_of_either_side() -> None:
    encoder = Encoder()
    string, others = encoder.encode(["AB"]), encoder.encode(["CDE"])
    assert (masked(string, others).tokens.max(axis=1) > 5).all()
    # The number after the largest of one byte needs two.
    full = Encoder().encode(["".join(map(chr, range(0x4E00, 0x4E00 + 255)))])
    assert masked(full).tokens.max() == 256
    groups = np.array([[True, True]])
    assert masked(string, None, groups).tokens.tolist() == [[3, 3]]


@pytest.mark.parametrize("kernel", [MinMaxKernel(), TanimotoKernel()], ids=["minmax", "tanimoto"])
@pytest.mark.parametrize("featurizer", [MorganFingerprint(), MorganFingerprint(counts=True), Fragprints()])
def test_shares_of_features_sum_to_the_covariance(kernel: MinMaxKernel, featurizer: MorganFingerprint) -> None:
    rows = FeatureEncoder(featurizer).encode(SMILES)
    for index in range(len(SMILES)):
        columns, shares = feature_shares(kernel, rows.take([index]), rows)
        np.testing.assert_allclose(shares.sum(0), kernel.cross(rows.take([index]), rows)[0], atol=1e-12)
        assert set(columns) == set(np.flatnonzero(rows.dense()[index]))
        # What the other one does not have, is no part of what both have.
        missing = rows.dense()[:, columns].T == 0
        assert not shares[missing].any()


def test_shares_are_those_of_one_string() -> None:
    rows = FeatureRows(np.eye(3))
    with pytest.raises(InputError, match="shares are those of one string, not of 3"):
        feature_shares(MinMaxKernel(), rows, rows)
