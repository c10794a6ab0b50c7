"""What a fitted model says of contexts, against closed forms and dense linear algebra."""

import itertools
import math

import numpy as np
import pytest
import torch

from seqopt import CandidateSet
from seqopt.data import Contexts, Query
from seqopt.models.context_facts import context_facts
from seqopt.models.contexts import coregionalized, hierarchical

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
    assert one.offset_interval[0] < one.offset < one.offset_interval[1]
    # By dense algebra, from the kernel itself.
    items = [*(Query(key, {"plate": "P1"}) for key in keys), *keys]
    rows, data = gp.encode(items), gp.encode(queries)
    kernel, noise = gp.model.covar_module, gp.model.likelihood.noise.item()
    with torch.no_grad():
        prior, cross, own = kernel(rows).to_dense(), kernel(rows, data).to_dense(), kernel(data).to_dense()
    own = own + noise * torch.eye(len(data), dtype=own.dtype)
    covariance = prior - cross @ torch.linalg.solve(own, cross.mT)
    weights = torch.cat([torch.full((len(keys),), sign / len(keys), dtype=own.dtype) for sign in (1.0, -1.0)])
    scale = np.std(values, ddof=1)
    assert one.offset_std == pytest.approx(scale * math.sqrt(float(weights @ covariance @ weights)), rel=1e-3)


def test_one_string_has_no_differences():
    contexts = Contexts.of_plates()
    queries = [Query("AAAA", {"plate": plate}) for plate in ("P1", "P2", "P3")]
    gp = fitted(hierarchical(SPACE, contexts), queries, [1.0, 2.0, 1.5])
    assert context_facts(gp, {query.context: ["AAAA"] for query in queries}) == {}
