"""Variational autoencoders of strings: latent spaces to model and search in, as a baseline.

A codec (`CharacterCodec`, `GrammarCodec`, `SelfiesCodec`) turns strings into rows of symbols; `train` fits a network to
them and gives a `StringVAE`, which is a `seqopt.encoding.Featurizer`; `evaluate_vae` says how good it is.
"""

from seqopt.vae.character import CharacterCodec
from seqopt.vae.codecs import Codec
from seqopt.vae.evaluation import VAEEvaluation, evaluate_vae
from seqopt.vae.grammar import GrammarCodec
from seqopt.vae.model import StringVAE
from seqopt.vae.networks import SMILES_SIZES, NetworkSizes
from seqopt.vae.selfies import SelfiesCodec
from seqopt.vae.training import SMILES_SETTINGS, Epoch, Training, TrainingSettings, train

__all__ = [
    "SMILES_SETTINGS",
    "SMILES_SIZES",
    "CharacterCodec",
    "Codec",
    "Epoch",
    "GrammarCodec",
    "NetworkSizes",
    "SelfiesCodec",
    "StringVAE",
    "Training",
    "TrainingSettings",
    "VAEEvaluation",
    "evaluate_vae",
    "train",
]
