"""A toy language and tiny models of it, trained once for all tests."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from seqopt.spaces import GrammarSpace
from seqopt.vae import CharacterCodec, GrammarCodec, NetworkSizes, StringVAE, TrainingSettings, train

SIZES = NetworkSizes(latent=6, hidden=128, embedding=8, features=24, memory=16)
SETTINGS = TrainingSettings(
    epochs=60, batch_size=16, learning_rate=6e-3, kl_weight=0.02, warmup=0.3, held_out=0.1, patience=60
)


@pytest.fixture(scope="session")
def expressions() -> list[str]:
    return GrammarSpace("arithmetic", 1, 5).sample(200, np.random.default_rng(0))


@pytest.fixture(scope="session")
def tiny() -> list[str]:
    """All expressions of up to three terminals."""
    return GrammarSpace("arithmetic", 1, 3).sample(100, np.random.default_rng(0))


@pytest.fixture(scope="session")
def toy() -> SimpleNamespace:
    return SimpleNamespace(sizes=SIZES, settings=SETTINGS)


@pytest.fixture(scope="session")
def trained(tiny: list[str]) -> dict[str, StringVAE]:
    codecs = {"character": CharacterCodec.of(tiny), "grammar": GrammarCodec.of("arithmetic", tiny)}
    return {
        name: train(tiny, codec, SIZES, SETTINGS, rng=np.random.default_rng(1)).vae for name, codec in codecs.items()
    }
