"""Draws of the parameters of a Gaussian process from their posterior: grids, slices, particles, and diagnostics."""

from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.diagnostics import effective_sample_size, split_r_hat
from seqopt.models.sampling.grid import GridSampler
from seqopt.models.sampling.mode import ModeSampler
from seqopt.models.sampling.motif import MotifSampler
from seqopt.models.sampling.parameters import Coordinate, KernelParameters
from seqopt.models.sampling.protocols import GOOD_R_HAT, ParameterSample, Sampler
from seqopt.models.sampling.slice_sampler import SliceSampler
from seqopt.models.sampling.smc import SMCSampler

__all__ = [
    "GOOD_R_HAT",
    "Coordinate",
    "GridSampler",
    "KernelParameters",
    "LogPosterior",
    "ModeSampler",
    "MotifSampler",
    "ParameterSample",
    "SMCSampler",
    "Sampler",
    "SliceSampler",
    "effective_sample_size",
    "split_r_hat",
]
