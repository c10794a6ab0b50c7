"""The kernel on counts: its formula, gradients, and what a model makes of more of the same."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from seqopt.encoding import FeatureEncoder, FeatureRows, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import CountsKernel, JointKernel, MinMaxKernel, NgramKernel
from seqopt.models import SURROGATES, StringGP, contributions_of
from seqopt.models.sampling import KernelParameters
from seqopt.utils.config import from_config

tables = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 4) | st.integers(0, 60), min_size=width, max_size=width).map(tuple),
        min_size=1,
        max_size=7,
    )
)


def brute(a: np.ndarray, b: np.ndarray, v: float) -> np.ndarray:
    found = np.empty((len(a), len(b)))
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            most = np.maximum(one, other).sum()
            lengths = [min(1.0, 32.0 / np.linalg.norm(row)) if row.any() else 1.0 for row in (one, other)]
            product = lengths[0] * lengths[1] * float(one @ other)
            found[i, j] = (np.minimum(one, other).sum() / most if most else 1.0) + v * product
    return found


@given(table=tables, v=st.floats(1e-6, 1.0), cut=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_every_form_is_the_formula(table: list[tuple[int, ...]], v: float, cut: int) -> None:
    rows = np.array(table, dtype=np.float64)
    kernel = CountsKernel(weight_variance=v)
    expected = brute(rows, rows, v)
    for values in (rows, sparse.csr_array(rows)):
        counts = FeatureRows(values)
        few = counts.take(np.arange(min(cut, len(rows))))
        own = kernel.self_similarity(counts)
        np.testing.assert_allclose(kernel.cross(counts), expected, rtol=1e-12)
        np.testing.assert_allclose(kernel.cross(few, counts, None, own), expected[: len(few)], rtol=1e-12)
        np.testing.assert_allclose(kernel.cross(counts, few, own), expected[:, : len(few)], rtol=1e-12)
        np.testing.assert_allclose(kernel.cross(counts, dtype=np.float32), expected, rtol=1e-5)
        np.testing.assert_allclose(kernel.variance(counts), expected.diagonal(), rtol=1e-12)
    x = torch.from_numpy(rows)
    with torch.no_grad():
        np.testing.assert_allclose(kernel.forward(x, x).numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(kernel.forward(x, x.clone()[:cut]).numpy(), expected[:, :cut], rtol=1e-12)
        np.testing.assert_allclose(kernel.forward(x, x, diag=True).numpy(), expected.diagonal(), rtol=1e-12)
    assert np.linalg.eigvalsh(expected).min() > -1e-9


def test_blocks_of_columns_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = FeatureRows(sparse.csr_array(rng.poisson(0.3, (40, 16)).astype(np.float64)))
    whole = CountsKernel().cross(rows)
    monkeypatch.setattr("seqopt.kernels.counts.BLOCK_ELEMENTS", 100)
    np.testing.assert_allclose(CountsKernel().cross(rows), whole, rtol=1e-14)
    np.testing.assert_allclose(CountsKernel().cross(rows.take(np.arange(5)), rows), whole[:5], rtol=1e-14)


def test_its_one_parameter_has_the_gradient_of_the_formula_and_what_is_kept_is_that_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    x, y = (torch.from_numpy(rng.poisson(1.0, (5, 8)).astype(np.float64)) for _ in range(2))
    kernel = CountsKernel(weight_variance=0.03)
    for rows in (x, y, x):
        kernel.zero_grad()
        kernel.forward(rows, rows).sum().backward()
        assert float(kernel.raw_log_variance.grad) == pytest.approx(0.03 * float((rows @ rows.T).sum()))
        kernel.weight_variance = 0.03
    kernel.weight_variance = 0.5
    torch.testing.assert_close(kernel.forward(x, x).detach(), torch.from_numpy(brute(x.numpy(), x.numpy(), 0.5)))
    kernel.forget()
    rows = x.clone().requires_grad_(True)
    kernel.forward(rows, rows).sum().backward()
    assert rows.grad is not None


def test_it_is_written_down_with_its_parameter_and_sampled_on_its_logarithm() -> None:
    kernel = JointKernel(NgramKernel(), CountsKernel(weight_variance=0.25), 4)
    made = from_config(kernel.config())
    assert made.features.weight_variance.item() == pytest.approx(0.25)
    parameters = KernelParameters(CountsKernel(log_variance_prior=gpytorch.priors.NormalPrior(-3.0, 0.5)))
    (found,) = parameters.coordinates
    assert (found.name, found.lower) == ("log_variance", pytest.approx(math.log(1e-6)))
    assert found.log_prior(-3.0) > found.log_prior(-5.0)
    assert repr(CountsKernel(weight_variance=0.25)) == "CountsKernel(weight_variance=0.25)"


def test_what_is_far_larger_than_all_else_promises_no_more_than_much() -> None:
    rows = FeatureRows(sparse.csr_array(np.array([[20.0, 20.0], [400.0, 400.0], [4000.0, 0.0]])))
    kernel = CountsKernel(weight_variance=0.01)
    np.testing.assert_allclose(kernel.variance(rows), [1 + 0.01 * 800, 1 + 0.01 * 1024, 1 + 0.01 * 1024])


def test_small_integers_do_not_overflow_and_nothing_is_kept_of_inference() -> None:
    rows = np.array([[20, 3], [7, 15]], dtype=np.uint8)
    kernel = CountsKernel()
    for values in (rows, sparse.csr_array(rows)):
        counts = FeatureRows(values)
        np.testing.assert_allclose(kernel.variance(counts), kernel.cross(counts).diagonal(), rtol=1e-12)
    x = torch.from_numpy(rows.astype(np.float64))
    with torch.inference_mode():
        kernel.forward(x, x)
    kernel.forward(x, x).sum().backward()
    joint = JointKernel(NgramKernel(), CountsKernel(), 2).requires_grad_(False)
    both = torch.cat([x, torch.ones(2, 3, dtype=torch.float64)], dim=1)
    before = joint.forward(both, both)
    joint.features.weight_variance = 0.9
    assert not torch.equal(joint.forward(both, both), before)


@pytest.mark.parametrize("value", [0.0, 2.0, math.nan])
def test_a_variance_out_of_bounds_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="weight_variance is"):
        CountsKernel(weight_variance=value)


def test_what_is_not_counts_is_refused() -> None:
    with pytest.raises(InputError, match="features of at least 0"):
        CountsKernel().cross(FeatureRows(np.array([[1.0, -1.0]])))
    with pytest.raises(InputError, match="single columns"):
        CountsKernel().forward(torch.ones(2, 2), torch.ones(2, 2), last_dim_is_batch=True)


def test_more_of_the_same_is_better_beyond_what_was_measured() -> None:
    """Which a kernel of similarity alone cannot say."""
    known, longer = ["C" * length + "O" for length in range(2, 9)], ["C" * 16 + "O"]
    values = [float(len(smiles)) for smiles in known]
    encoder = FeatureEncoder(MorganFingerprint(counts=True))
    predicted = {}
    for kernel in (CountsKernel(), MinMaxKernel()):
        gp = StringGP(kernel, encoder=encoder)
        gp.fit(known, values, rng=np.random.default_rng(0))
        predicted[type(kernel)] = float(gp.predict(longer)[0][0])
    assert predicted[CountsKernel] > 14.0
    assert predicted[MinMaxKernel] < 11.0


@pytest.mark.parametrize("name", ["counts", "ngrams+counts"])
def test_its_surrogates_fit_predict_explain_and_continue(name: str) -> None:
    known = ["CCO", "CCN", "CCCO", "c1ccccc1O", "CCCCN", "CC(=O)O", "CCC", "c1ccccc1"]
    values = [1.0, 0.2, 1.3, 2.0, 0.6, 1.9, 0.1, 0.9]
    gp = SURROGATES[name].build()
    gp.fit(known, values, rng=np.random.default_rng(0))
    other = SURROGATES[name].build()
    other.load_state_dict(gp.state_dict())
    other.fit(known, values, rng=np.random.default_rng(0))
    mean, _ = gp.predict(["CCCCO", "CCS"])
    np.testing.assert_allclose(other.predict(["CCCCO", "CCS"])[0], mean, atol=0.05)
    found = contributions_of(gp, "CCCCO")
    assert found.unit == "atom"
    assert len(found.values) == 5
    assert np.isfinite(found.values).all()
