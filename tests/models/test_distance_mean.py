"""A prior mean that falls with the distance from a lead: its values, and what a search makes of it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import DataStructs, rdFingerprintGenerator

from seqopt import CandidateSet
from seqopt.acquisition import LogExpectedImprovement
from seqopt.errors import InputError
from seqopt.kernels.engines.edit_distance import edit_distances
from seqopt.models import (
    DistanceMean,
    EditDistance,
    FullyBayesianGP,
    FullyBayesianStringGP,
    KernelDistance,
    StringGP,
    StringLength,
    TanimotoDistance,
    lead_distance,
    with_mean,
)
from seqopt.models.distance_mean import penalty
from seqopt.utils.config import from_config

POOL = CandidateSet(["".join("AB"[i >> k & 1] for k in range(7)) for i in range(128)], kind="text")
LEAD = "AAAAAAA"
NEAR = [key for key in POOL.keys if key.count("B") <= 2]
TRAIN = NEAR[:10]
VALUES = np.array([key.count("BA") + 0.5 * key.count("AB") + 3.0 for key in TRAIN])


def brute_distance(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    options = brute_distance(a[1:], b) + 1, brute_distance(a, b[1:]) + 1
    return min(*options, brute_distance(a[1:], b[1:]) + (a[0] != b[0]))


@settings(max_examples=30, deadline=None)
@given(st.text("ab", max_size=5), st.text("abc", max_size=5))
def test_edit_distances_are_those_of_the_definition(a: str, b: str) -> None:
    assert edit_distances([a, b], [b]).tolist() == [[brute_distance(a, b)], [0]]


def test_tanimoto_distances_are_those_of_rdkit() -> None:
    smiles = ["CCO", "CC(=O)Nc1ccc(O)cc1", "c1ccccc1O", "CC(=O)Nc1ccccc1"]
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048, includeChirality=True)
    prints = [generator.GetCountFingerprint(Chem.MolFromSmiles(one)) for one in smiles]
    expected = [1.0 - DataStructs.TanimotoSimilarity(one, prints[1]) for one in prints]
    np.testing.assert_allclose(TanimotoDistance(smiles[1])(smiles), expected, atol=1e-6)


def test_kernel_distances_are_those_of_normalised_images() -> None:
    distance = KernelDistance("ABBA")
    assert distance(["ABBA"])[0] == pytest.approx(0.0, abs=1e-6)
    a, b = distance(["ABAB", "CCCC"])
    assert 0.0 < a < b
    assert b == pytest.approx(math.sqrt(2.0))
    # One string at a time, and all together.
    strings = ["ABAB", "A", "ABBABBA"]
    np.testing.assert_allclose(distance(strings), [distance([one])[0] for one in strings], rtol=1e-12)


def test_the_hinge_is_0_in_the_ball_and_1_at_twice_its_radius() -> None:
    assert penalty([0.0, 0.2, 0.4], 0.4).tolist() == [0.0, 0.0, 0.0]
    assert penalty([0.8], 0.4)[0] == pytest.approx(1.0)
    assert penalty([0.4 + 2 * 0.4], 0.4, beta=2.0)[0] == pytest.approx(1.0)
    assert penalty([0.4, 0.8], 0.4, "quadratic").tolist() == [1.0, 4.0]


def fitted(mean: DistanceMean | None, values: np.ndarray = VALUES, make: type = StringGP) -> StringGP:
    gp: StringGP = make(**({"restarts": 1} if make is StringGP else {"draws": 3}), mean=mean)
    gp.bind(POOL)
    gp.fit(TRAIN, values, rng=np.random.default_rng(1))
    return gp


@pytest.mark.parametrize("make", [StringGP, FullyBayesianStringGP])
def test_data_and_strings_in_the_ball_know_nothing_of_the_penalty(make: type) -> None:
    with_lead, without = fitted(DistanceMean(EditDistance(LEAD), 2), make=make), fitted(None, make=make)
    inside, outside = NEAR, [key for key in POOL.keys if key not in NEAR]
    np.testing.assert_allclose(with_lead.predict(inside), without.predict(inside), rtol=1e-10)
    far = with_lead.predict(outside)[0] - without.predict(outside)[0]
    expected = -VALUES.std(ddof=1) * penalty(EditDistance(LEAD)(outside), 2.0)
    np.testing.assert_allclose(far, expected, rtol=1e-8)
    # Expected improvement is therefore the same within the radius.
    found = []
    for gp in (with_lead, without):
        posterior = gp.pool_posterior(POOL)
        found.append(LogExpectedImprovement().prepare(posterior, np.random.default_rng(0))(posterior).numpy())
    places = [POOL.keys.index(key) for key in NEAR]
    np.testing.assert_allclose(found[0][places], found[1][places], rtol=1e-9)
    others = [place for place in range(len(POOL)) if place not in places]
    assert (found[0][others] < found[1][others]).all()


def test_noiseless_data_stay_as_they_were_measured() -> None:
    gp = StringGP(restarts=1, noise=1e-6, mean=DistanceMean(EditDistance(LEAD), 1))
    gp.bind(POOL)
    strings = POOL.keys[::9]
    values = np.random.default_rng(0).standard_normal(len(strings))
    gp.fit(strings, values, rng=np.random.default_rng(1))
    np.testing.assert_allclose(gp.predict(strings)[0], values, atol=0.02)


def test_units_of_the_values_do_not_matter() -> None:
    mean = DistanceMean(EditDistance(LEAD), 1, scale=0.7)
    one, other = fitted(mean), fitted(mean, 100.0 * VALUES - 5.0)
    np.testing.assert_allclose(100.0 * one.predict(POOL.keys)[0] - 5.0, other.predict(POOL.keys)[0], rtol=1e-6)
    # Values that are all equal have no unit.
    flat = fitted(mean, np.full(len(TRAIN), 2.0))
    assert np.isfinite(flat.predict(POOL.keys)[0]).all()


def test_length_can_be_penalised() -> None:
    mean = DistanceMean(StringLength(), 4, scale=2.0)
    assert (0.0 + mean(["A", "AAAA", "A" * 8])).tolist() == [0.0, 0.0, -2.0]


def test_a_mixture_over_kernels_takes_it_and_doubts_nothing() -> None:
    surrogate = FullyBayesianGP(weights="stacking", null=0.5, draws=2, mean=DistanceMean(EditDistance(LEAD), 1))
    surrogate.fit(TRAIN, np.random.default_rng(0).standard_normal(len(TRAIN)), rng=np.random.default_rng(0))
    assert surrogate.doubt == 0.0


def test_it_is_made_again_from_its_description_and_can_be_sent() -> None:
    for distance in (EditDistance(LEAD), TanimotoDistance("CCO"), StringLength(), KernelDistance("AB")):
        mean = DistanceMean(distance, 0.5, 2.0, "quadratic", 3.0)
        again = from_config(mean.config())
        assert again.config() == mean.config()
        strings = ["CCO", "CCN"]
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(mean))(strings), again(strings))
    gp = fitted(DistanceMean(EditDistance(LEAD), 1))
    again = from_config(gp.config())
    again.bind(POOL)
    again.fit(TRAIN, VALUES, rng=np.random.default_rng(1))
    np.testing.assert_allclose(again.predict(POOL.keys), gp.predict(POOL.keys), rtol=1e-12)


def test_a_surrogate_gets_a_mean_and_keeps_the_rest() -> None:
    base = StringGP(restarts=3, refit_growth=0.3)
    found = with_mean(base, DistanceMean(EditDistance(LEAD), 1))
    assert (found.restarts, found.refit_growth, base.mean) == (3, 0.3, None)
    assert with_mean(FullyBayesianStringGP(draws=4), len).draws == 4  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TanimotoDistance("C(C"), r"the lead 'C\(C' cannot be read as a molecule"),
        (lambda: EditDistance(""), "the lead is empty"),
        (lambda: lead_distance("MKV", "protein", "tanimoto"), "of kind 'protein': take edit"),
        (lambda: lead_distance("MKV", "protein", "hamming"), "expected auto, tanimoto, edit or kernel"),
        (lambda: DistanceMean(EditDistance("A"), 0), "radius is 0; expected a number above 0"),
        (lambda: DistanceMean(EditDistance("A"), math.nan), "radius is nan"),
        (lambda: DistanceMean(TanimotoDistance("CCO"), 1.2), "radius is 1.2; expected a number above 0 and below 1"),
        (lambda: DistanceMean(KernelDistance("CCO"), 1.5), "above 0 and below 1.414"),
        (lambda: DistanceMean(EditDistance("A"), 1, scale=-1), "scale is -1"),
        (lambda: DistanceMean(EditDistance("A"), 1, shape="cubic"), "shape is 'cubic'"),  # type: ignore[arg-type]
        (lambda: DistanceMean("CCO", 1), "'CCO' is not a distance"),  # type: ignore[arg-type]
        (lambda: with_mean(object(), len), "object takes no prior mean"),  # type: ignore[arg-type]
        (lambda: with_mean(StringGP(mean=len), len), "has a prior mean already"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("name", ["edit", "kernel"])
def test_a_molecule_is_compared_as_its_canonical_smiles_and_must_be_one(name: str) -> None:
    distance = lead_distance("OCC", "molecule", name)
    assert distance(["CCO", "CCN"])[0] == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(InputError, match=r"'C1CC' cannot be read as a molecule .*: give its SMILES"):
        lead_distance("C1CC", "molecule", name)
