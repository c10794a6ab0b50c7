"""Functions drawn from a process with the sub-sequence kernel, through BoTorch's pathwise sampling.

Over few symbols the kernel is a product of explicit features (`seqopt.kernels.engines.features`), so that a draw of the
prior is a random weight for each: exact, where other kernels have random Fourier features. With this module imported,
`botorch.sampling.pathwise.draw_matheron_paths` and ``draw_kernel_feature_paths`` take the BoTorch model of a
`seqopt.models.StringGP`.

References:
    Wilson, J., Borovitskiy, V., Terenin, A., Mostowsky, P., Deisenroth, M. (2020). Efficiently sampling functions from
    Gaussian process posteriors. ICML.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.sampling.pathwise.features import gen_kernel_features
from botorch.sampling.pathwise.features.maps import FeatureMap
from botorch.sampling.pathwise.paths import GeneralizedLinearPath
from botorch.sampling.pathwise.prior_samplers import DrawKernelFeaturePaths
from botorch.sampling.pathwise.update_strategies import GaussianUpdate
from botorch.sampling.pathwise.utils import OutputscaleTransform
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.kernels.engines.features import feature_count, subsequence_features
from seqopt.models.noise import PartlyKnownNoise
from seqopt.models.row_model import RowModel

MOST_FEATURES = 20_000
"""Number of features up to which functions are drawn: BoTorch draws their weights by Sobol sequences of 21,201."""


class SubsequenceFeatures(FeatureMap):
    r"""Features :math:`\phi` with :math:`\phi(a)^T \phi(b) = k(a, b)` for a sub-sequence kernel over few symbols.

    Args:
        kernel: A `seqopt.kernels.SubsequenceKernel` without batch shape.
        symbols: Number of symbols; rows hold numbers up to this.

    Raises:
        InputError: If there are more than `MOST_FEATURES`, or the kernel has a batch shape. When evaluated: if a row
            holds another symbol.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> kernel, rows = SubsequenceKernel(order=3), Encoder().encode(["ABBA", "BAB"]).to_tensor()
        >>> features = SubsequenceFeatures(kernel, symbols=2)(rows)
        >>> torch.allclose(features @ features.T, kernel(rows).to_dense())
        True
    """

    def __init__(self, kernel: SubsequenceKernel, symbols: int) -> None:
        super().__init__()
        if kernel.batch_shape:
            raise InputError("functions cannot be drawn with a kernel that has a batch shape")
        count = kernel.partitions * feature_count(symbols, kernel.order)
        if count > MOST_FEATURES:
            raise InputError(
                f"a sub-sequence kernel of order {kernel.order} over {symbols} symbols has {count:,} features; "
                f"functions can be drawn with up to {MOST_FEATURES:,}: take a lower order, or draw values at given "
                f"strings by StringGP.sample"
            )
        self.kernel = kernel
        self.symbols = symbols
        self.num_outputs = count
        self.batch_shape = torch.Size([])
        self.input_transform = None
        self.output_transform = None

    def forward(self, x: Tensor) -> Tensor:
        """Features ``... x n x num_outputs`` of rows ``... x n x W``, without a graph."""
        encoded = EncodedStrings.from_tensor(x.reshape(-1, x.shape[-1]))
        highest = int(encoded.tokens.max(initial=0))
        if highest > self.symbols:
            raise InputError(
                f"a row holds symbol number {highest}, but when the model was fitted there were {self.symbols} "
                f"symbols: fit it to strings with all symbols, or give its space an alphabet"
            )
        kernel = self.kernel
        gap, order = float(kernel.gap_decay.detach()), kernel.order
        symbols = np.arange(1, self.symbols + 1)
        parts = [
            subsequence_features(part, gap, order, symbols=symbols)[0] for part in encoded.split(kernel.partitions)
        ]
        weights = kernel.match_decay.detach().double() ** (2 * torch.arange(1, order + 1))
        if kernel.order_weights is not None:
            weights = weights * kernel.order_weights.detach().double()
        lengths = torch.tensor([self.symbols**length for length in range(1, order + 1)])
        roots = weights.sqrt().repeat_interleave(lengths).repeat(kernel.partitions)
        features = torch.from_numpy(np.concatenate(parts, axis=1)) * roots
        if kernel.normalize:
            features = torch.nn.functional.normalize(features, dim=1, eps=torch.finfo(torch.float64).tiny)
        return features.reshape(*x.shape[:-1], -1).to(x.dtype)


def _features(kernel: Kernel, num_inputs: int, num_outputs: int, *, symbols: int) -> FeatureMap:
    if type(kernel.base_kernel) is not SubsequenceKernel:
        return gen_kernel_features(kernel, num_inputs=num_inputs, num_outputs=num_outputs)
    features = SubsequenceFeatures(kernel.base_kernel, symbols)
    features.output_transform = OutputscaleTransform(kernel)
    return features


@DrawKernelFeaturePaths.register(RowModel)
def _draw_kernel_feature_paths(model: RowModel, **options: Any) -> GeneralizedLinearPath:
    generator = partial(_features, symbols=model.symbols)
    plain = DrawKernelFeaturePaths.dispatch(SingleTaskGP)
    return plain(model, **{"map_generator": generator, **options})


@GaussianUpdate.register(RowModel, PartlyKnownNoise)
def _gaussian_update(model: RowModel, likelihood: PartlyKnownNoise, **options: Any) -> GeneralizedLinearPath:
    plain = GaussianUpdate.dispatch(SingleTaskGP, GaussianLikelihood)
    noise = DiagLinearOperator(likelihood.noise + likelihood.known)
    return plain(model, likelihood, **{"noise_covariance": noise, **options})
