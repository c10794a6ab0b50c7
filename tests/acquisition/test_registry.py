"""What holds for every acquisition function by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from seqopt.acquisition import ACQUISITIONS, GIBBON, Acquisition, DensePosterior, resolve_acquisition
from seqopt.errors import InputError


@pytest.mark.parametrize("name", ACQUISITIONS)
@pytest.mark.parametrize("draws", [None, 3])
def test_a_greedy_batch_is_fixed_by_the_generator(
    name: str, draws: int | None, make_posterior: Callable[..., DensePosterior]
) -> None:
    acquisition = resolve_acquisition(name)
    assert isinstance(acquisition, Acquisition)
    assert acquisition.name == name
    batches = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        posterior = make_posterior(points=12, observed=4, draws=draws)
        prepared = acquisition.prepare(posterior, np.random.default_rng(7), batch_size=3)
        rounds = []
        for _ in range(3):
            scores = prepared(posterior)
            assert (scores.shape, scores.dtype) == ((12,), torch.float64)
            assert not scores.isnan().any()
            rounds.append(scores)
            posterior = posterior.given(int(scores.argmax()))
        batches.append(torch.stack(rounds))
    assert torch.equal(batches[0], batches[1])


def test_objects_pass_through() -> None:
    acquisition = GIBBON(num_samples=3)
    assert resolve_acquisition(acquisition) is acquisition


@pytest.mark.parametrize("wrong", ["ei", "", GIBBON, 3])
def test_what_is_unknown_is_refused_with_the_names(wrong: object) -> None:
    with pytest.raises(InputError, match="gibbon, logei, ucb, thompson, mean, random"):
        resolve_acquisition(wrong)  # type: ignore[arg-type]
