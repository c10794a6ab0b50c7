"""What a fitted model says of contexts, against closed forms and dense linear algebra."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

from seqopt import CandidateSet
from seqopt.data import Contexts, Query
from seqopt.kernels.hierarchical import PRIOR
from seqopt.models.context_facts import context_facts
from seqopt.models.contexts import coregionalized, hierarchical
from seqopt.models.offset_posterior import DEVIATIONS, OFFSETS

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=4)]
SPACE = CandidateSet(POOL)
DOCKING, ASSAY = (("fidelity", "docking"),), (("fidelity", "assay"),)
RNG = np.random.default_rng(0)


def fitted(surrogate, queries, values):
    surrogate.restarts = 1
    surrogate.fit(queries, np.array(values), rng=np.random.default_rng(1))
    return surrogate


def test_the_correlation_of_coregionalisation_is_that_of_its_matrix():
    contexts = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
    queries = [Query(key, ASSAY) for key in POOL[:8]] + [Query(key, DOCKING) for key in POOL[4:]]
    values = [query.key.count("AB") + (query.context == DOCKING) * RNG.normal() for query in queries]
    gp = fitted(coregionalized(SPACE, contexts), queries, values)
    found = context_facts(gp, {ASSAY: POOL[:8], DOCKING: POOL[4:]}, ASSAY)
    assert list(found) == [DOCKING]
    shared = next(
        module.covariance
        for module in gp.model.covar_module.modules()
        if type(module).__name__ == "CoregionalizationKernel" and module.raw_factors.requires_grad
    )
    matrix = shared.detach().numpy()
    expected = matrix[0, 1] / math.sqrt(matrix[0, 0] * matrix[1, 1])
    assert found[DOCKING].correlation == pytest.approx(expected, abs=1e-9)
    assert found[DOCKING].correlation_low < expected < found[DOCKING].correlation_high
    # Each has a unit of its own: what they differ by is in none.
    assert math.isnan(found[DOCKING].offset)


def test_offsets_of_plates_are_the_posterior_of_their_mean_difference():
    contexts = Contexts.of_plates()
    shift = {"P1": 0.0, "P2": 3.0}
    queries = [Query(key, {"plate": plate}) for place, key in enumerate(POOL) for plate in ("P1", "P2") if place % 3]
    values = [query.key.count("AB") + shift[query.get("plate")] for query in queries]
    gp = fitted(hierarchical(SPACE, contexts), queries, values)
    keys = list(dict.fromkeys(query.key for query in queries))
    plates = {(("plate", plate),): keys for plate in shift}
    found = context_facts(gp, plates)
    one, two = (found[(("plate", plate),)] for plate in shift)
    assert two.offset - one.offset == pytest.approx(3.0, abs=0.2)
    assert one.offset_low < one.offset < one.offset_high
    # By dense algebra, from the kernel itself, averaged over its two variances.
    items = [*(Query(key, {"plate": "P1"}) for key in keys), *keys]
    rows, data = gp.encode(items), gp.encode(queries)
    noise = gp.model.likelihood.noise.item() * torch.eye(len(queries), dtype=torch.float64)
    weights = torch.cat([torch.full((len(keys),), sign / len(keys), dtype=torch.float64) for sign in (1.0, -1.0)])
    residuals = (gp.fitted.targets - gp.fitted.constant[0]).double().reshape(-1)
    parts = []
    kernel = gp.model.covar_module
    for deviation in DEVIATIONS:
        for offset in OFFSETS:
            kernel.base_kernel.deviation, kernel.base_kernel.offset = deviation, offset
            with torch.no_grad():
                prior, cross, own = (kernel(*pair).to_dense().double() for pair in ((rows,), (rows, data), (data,)))
            factor = torch.linalg.cholesky(own + noise)
            solved = torch.cholesky_solve(torch.column_stack([residuals, cross.mT]), factor)
            log_density = -0.5 * residuals @ solved[:, 0] - factor.diagonal().log().sum()
            for value in (deviation, offset):
                log_density -= 0.5 * ((math.log(value) - PRIOR[0]) / PRIOR[1]) ** 2
            moments = weights @ cross @ solved[:, 0], weights @ (prior - cross @ solved[:, 1:]) @ weights
            parts.append((float(log_density), *map(float, moments)))
    logs, means, variances = np.array(parts).T
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    scale = np.std(values, ddof=1)
    assert one.offset == pytest.approx(scale * shares @ means, rel=1e-3)
    spread = math.sqrt(shares @ (variances + means**2) - (shares @ means) ** 2)
    assert one.offset_std == pytest.approx(scale * spread, rel=1e-3)
    for end, share in ((one.offset_low, 0.05), (one.offset_high, 0.95)):
        below = shares @ scipy.stats.norm.cdf((end / scale - means) / np.sqrt(variances))
        assert below == pytest.approx(share, abs=1e-3)


def test_one_string_has_no_differences():
    contexts = Contexts.of_plates()
    queries = [Query("AAAA", {"plate": plate}) for plate in ("P1", "P2", "P3")]
    gp = fitted(hierarchical(SPACE, contexts), queries, [1.0, 2.0, 1.5])
    assert context_facts(gp, {query.context: ["AAAA"] for query in queries}) == {}
