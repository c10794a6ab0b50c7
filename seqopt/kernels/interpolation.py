r"""Gram matrices at any gap decay by Chebyshev interpolation, for fits that try hundreds of gap decays.

For fixed strings the normalised per-order Gram matrices

    H_i(gap)[a, b] = h_i(a, b) / sqrt(h_i(a, a) h_i(b, b))

are smooth functions of the gap decay with values in [0, 1]. What changes quickly does so near the largest decay g_1,
where a gap of the length of a string begins to count: over a distance that is inverse to that length. So what is
interpolated is a function of t in [-1, 1] with

    gap = g_1 - core sinh(arcsinh((g_1 - g_0) / core) (1 - t) / 2),

as smooth everywhere as at that end. A polynomial through Chebyshev nodes converges geometrically (Trefethen 2013,
chapters 8 and 22), and takes few more nodes than the functions have dimensions: 35 where they have 33 (order 5,
variants of 290 symbols), and 74 with nodes that are Chebyshev's in the gap decay itself. Logarithms of the diagonals
h_i(a, a) are interpolated in the same nodes, so that no dynamic program is left for an evaluation. The number of nodes
is read off the decay of the coefficients for a sample of the strings; the family of nodal matrices is then compressed
by a singular value decomposition.

References:
    Tee, T. W. and Trefethen, L. N. (2006). A rational spectral collocation method with adaptively transformed Chebyshev
    grid points. SIAM Journal on Scientific Computing 28, 1798-1811 (section 4: the map by a hyperbolic sine).
    Trefethen, L. N. (2013). Approximation Theory and Approximation Practice. SIAM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.kernels.covariances import Block, Matrix, Program, gram_layout
from seqopt.kernels.engines import order_sums
from seqopt.kernels.threads import one_thread

Float64Array = npt.NDArray[np.float64]

TOLERANCE = 1e-8
"""Largest error of a normalised covariance that is accepted."""

SAMPLE_NODES = (48, 96)
"""Nodes at which the sample is evaluated, the second where the first are too few; so the largest number of nodes."""

FEWEST_NODES = 8
"""Smallest number of nodes."""

SAMPLE_STRINGS = 5
"""How many of the longest, of the shortest and of the other strings make up the sample."""

CORE = 15.0
"""Distance from a gap decay of 1 at which nodes begin to spread, times the length of the longest string: between 12 and
18 the fewest nodes are needed, for random strings, molecules and variants of 58 to 720 symbols."""

GAIN = 1.4
"""What one more node divides the error by at least, in strings that took most: where too few were chosen."""

SPARE_NODES = 2
"""Nodes beyond those that the sample needs: among many pairs of short strings are some that need more, and to find
that out afterwards costs all nodes again."""

LEFT_OUT = 0.25 * TOLERANCE
"""Sum of the coefficients that the nodes may leave out: the error of interpolation is at most twice that."""

COMPRESSION = 0.1 * TOLERANCE
"""Largest error of the compression."""

BASIS_PAIRS = 500
"""Pairs from which the compression is derived; it is then checked for all."""


@dataclass(frozen=True)
class ChebyshevNodes:
    """Chebyshev nodes of the first kind of a function of t in [-1, 1], mapped to an interval as the module says.

    Attributes:
        count: Number of nodes.
        lower: Left end, t = -1.
        upper: Right end, t = 1.
        core: Distance from the right end up to which equal steps of t are nearly equal steps of x; beyond, steps grow
            in proportion to the distance. Infinity for a linear map.
    """

    count: int
    lower: float
    upper: float
    core: float = math.inf

    @classmethod
    def for_strings(cls, count: int, lower: float, upper: float, longest: float) -> ChebyshevNodes:
        """Nodes between two gap decays for strings of at most so many symbols."""
        return cls(count, lower, upper, 1.0 - upper + CORE / max(1.0, longest))

    @property
    def _turn(self) -> float:
        return math.asinh((self.upper - self.lower) / self.core)

    def _at(self, t: Float64Array) -> Float64Array:
        """The map of t to x."""
        if math.isinf(self.core):
            x = self.upper - (self.upper - self.lower) * (1.0 - t) / 2.0
        else:
            x = self.upper - self.core * np.sinh(self._turn * (1.0 - t) / 2.0)
        inside: Float64Array = np.clip(x, self.lower, self.upper)
        return inside

    def _place(self, x: float) -> tuple[float, float]:
        """The inverse of the map, and its derivative."""
        if math.isinf(self.core):
            steps, slope = (self.upper - x) / (self.upper - self.lower), 2.0 / (self.upper - self.lower)
        else:
            steps = math.asinh((self.upper - x) / self.core) / self._turn
            slope = 2.0 / (self._turn * math.hypot(self.core, self.upper - x))
        return min(1.0, max(-1.0, 1.0 - 2.0 * steps)), slope

    @property
    def _angles(self) -> Float64Array:
        return (2.0 * np.arange(self.count, dtype=np.float64) + 1.0) * np.pi / (2.0 * self.count)

    @property
    def points(self) -> Float64Array:
        """The nodes, from right to left."""
        return self._at(np.cos(self._angles))

    def between(self) -> list[float]:
        """Three points midway between nodes: near either end and in the middle."""
        return self._at(np.cos(np.pi / self.count * np.array([1, self.count // 2, self.count - 1]))).tolist()

    @cached_property
    def transform(self) -> Float64Array:
        """Matrix (count x count) from values at the nodes to coefficients of the Chebyshev polynomials of t."""
        matrix = 2.0 / self.count * np.cos(np.outer(np.arange(self.count), self._angles))
        matrix[0] /= 2.0
        return matrix

    def basis(self, x: float) -> Float64Array:
        """Values and derivatives at x of the polynomials of t that are 1 at one node and 0 at the others, 2 x count."""
        t, slope = self._place(x)
        first, second = np.zeros(self.count), np.zeros(self.count)
        first[0] = second[0] = 1.0
        if self.count > 1:
            first[1], second[1] = t, 2.0 * t
        for k in range(2, self.count):
            first[k] = 2.0 * t * first[k - 1] - first[k - 2]
            second[k] = 2.0 * t * second[k - 1] - second[k - 2]
        # T_k' = k U_{k-1}, with U the polynomials of the second kind.
        slopes = np.concatenate([[0.0], np.arange(1, self.count) * second[:-1]]) * slope
        return np.stack([first, slopes]) @ self.transform


class InterpolatedGram(Matrix):
    """The pairs of a Gram matrix, whose sums come from an interpolant in the gap decay. Made by `build`.

    Attributes:
        nodes: The nodes.
    """

    def __init__(
        self, rows: EncodedStrings, nodes: ChebyshevNodes, blocks: list[_CompressedBlock], own: Float64Array
    ) -> None:
        super().__init__(rows, None)
        self.nodes = nodes
        self._blocks = blocks
        # A string that is long enough has a contiguous sub-sequence, which counts 1 or more at every gap decay.
        self._none = own[0] == 0
        self._logarithms = np.log(np.where(self._none, 1.0, own)).reshape(nodes.count, -1)

    @classmethod
    def build(
        cls, rows: EncodedStrings, program: Program, lower: float, upper: float, budget: int
    ) -> InterpolatedGram | None:
        """An interpolant of the Gram matrix of ``rows`` with an error of at most `TOLERANCE`.

        While it is built it takes nodes x order / 2 Gram matrices (35 to 40 nodes for drug-like molecules, for
        proteins and for genes), and hardly less afterwards.

        Args:
            rows: The strings.
            program: Engine, order and so on; its gap decay and its precision do not matter.
            lower: Smallest gap decay.
            upper: Largest gap decay.
            budget: Largest number of bytes that it may take.

        Returns:
            `None` if that would need more than the last of `SAMPLE_NODES`, or more memory than the budget, or if Numba
            is missing.
        """
        if find_spec("numba") is None:
            return None
        exact = replace(program, dtype=np.dtype(np.float64))
        needed = Matrix(rows, None).size(exact, slopes=False)
        if needed * FEWEST_NODES > budget:
            return None
        nodes = _choose_nodes(rows, exact, lower, upper)
        # The sample may have been too kind: what was built is measured, and built again with more nodes if need be.
        while nodes is not None and needed * nodes.count <= budget:
            gram = cls(rows, nodes, *_build(rows, exact, nodes))
            error = gram._error(exact)
            if error < TOLERANCE:
                return gram
            if not math.isfinite(error):
                return None
            more = nodes.count + 2 + math.ceil(math.log(error / TOLERANCE) / math.log(GAIN))
            nodes = replace(nodes, count=more) if more <= SAMPLE_NODES[-1] else None
        return None

    def _error(self, program: Program) -> float:
        """Largest error of H_i, and relative one of h_i(s, s), midway between nodes, where interpolation errs most."""
        ones = np.ones((program.order, len(self.rows)))
        worst = 0.0
        for gap in self.nodes.between():
            exact, own = _normalized(self.rows, replace(program, gap=gap))
            at = self.nodes.basis(gap)[:1]
            relative = self._selves(at)[0] / np.where(own > 0, own, 1.0) - (own > 0)
            worst = max(worst, float(np.abs(relative).max(initial=0.0)))
            for block in self._blocks:
                values = block.evaluate(at, ones, 0 * ones)[0]
                worst = max(worst, float(np.abs(values - exact[:, block.rows, block.columns]).max(initial=0.0)))
        return worst

    def _selves(self, at: Float64Array) -> Float64Array:
        """h_i(s, s) and derivatives, parts x order x strings, see `_CompressedBlock.evaluate`."""
        logarithms = (at @ self._logarithms).reshape(len(at), *self._none.shape)
        logarithms[0] = np.where(self._none, 0.0, np.exp(logarithms[0]))
        logarithms[1:] *= logarithms[0]
        return logarithms

    def same_strings(self, gram: Matrix) -> bool:
        """Whether ``gram`` is the Gram matrix of the same strings."""
        return gram.symmetric and gram.shape == self.shape and gram.key[-1] == self.key[-1]

    def blocks(self, program: Program, slopes: bool, weights: Tensor | None = None) -> Iterator[Block]:
        """See `seqopt.kernels.covariances.Pairs.blocks`; derivatives are those of the interpolant."""
        at = self.nodes.basis(program.gap)
        own, own_slopes = self._selves(at)
        roots = np.sqrt(own)
        root_slopes = np.zeros_like(roots)
        np.divide(0.5 * own_slopes, roots, out=root_slopes, where=own > 0)
        at = at[: 1 + slopes]
        for block in self._blocks:
            sums = torch.from_numpy(block.evaluate(at, roots, root_slopes))
            if weights is not None:
                sums = torch.tensordot(sums, weights, ([1], [0]))[:, None]
            values, derivatives = sums[0][:, None], sums[1][:, None] if slopes else None
            yield Block(slice(0, 1), block.rows, block.columns, values, derivatives)

    def known_selves(self, program: Program, slopes: bool) -> tuple[Tensor, Tensor | None]:
        """See `seqopt.kernels.covariances.Pairs.known_selves`: also interpolated."""
        found = torch.from_numpy(self._selves(self.nodes.basis(program.gap)[: 1 + slopes]))
        return found[0], found[1] if slopes else None


@dataclass(frozen=True)
class _CompressedBlock:
    """A block of the interpolant.

    For each order, the values at the nodes are bases (nodes x rank) times weights (rows x rank x columns: in the order
    in which an evaluation reads them).
    """

    rows: slice
    columns: slice
    bases: list[Float64Array]
    weights: list[Float64Array]

    def evaluate(self, at: Float64Array, roots: Float64Array, root_slopes: Float64Array) -> Float64Array:
        """Per-order sums and derivatives, parts x order x rows x columns.

        Args:
            at: `ChebyshevNodes.basis`, one row for sums only, two for derivatives as well.
            roots: Square roots of h_i(s, s), order x strings.
            root_slopes: Their derivatives in the gap decay.
        """
        columns = self.columns.stop
        # Numba is not needed before something is interpolated.
        from seqopt.kernels.engines.compiled import combine_nodes

        result = np.zeros((len(at), len(self.bases), self.rows.stop - self.rows.start, columns))
        for order, (basis, weights) in enumerate(zip(self.bases, self.weights, strict=True)):
            own, slopes = roots[order], root_slopes[order]
            here = own[self.rows], slopes[self.rows], own[:columns], slopes[:columns]
            # Contiguous arrays throughout: the compiled loops are vectorised for those only.
            derivatives = result[1, order] if len(at) == 2 else _NOTHING
            combine_nodes(at @ basis, weights, *here, result[0, order], derivatives)
        return result


_NOTHING = np.empty((0, 0))


def _choose_nodes(rows: EncodedStrings, program: Program, lower: float, upper: float) -> ChebyshevNodes | None:
    """As many nodes as a sample needs: distinct strings, the shortest, the longest and some between."""
    _, distinct = np.unique(rows.tokens, axis=0, return_index=True)
    by_length = distinct[np.argsort(rows.lengths[distinct], kind="stable")]
    between = by_length[:: max(1, len(by_length) // SAMPLE_STRINGS)]
    chosen = np.unique(np.concatenate([by_length[:SAMPLE_STRINGS], by_length[-SAMPLE_STRINGS:], between]))
    sample = rows.take(chosen)
    longest = float(rows.lengths.max(initial=0)) / program.partitions
    for count in SAMPLE_NODES:
        nodes = ChebyshevNodes.for_strings(count, lower, upper, longest)
        values = [_normalized(sample, replace(program, gap=point)) for point in nodes.points]
        family = [np.concatenate([gram.ravel(), np.log(np.where(own > 0, own, 1.0)).ravel()]) for gram, own in values]
        coefficients = np.abs(nodes.transform @ np.stack(family)).max(axis=1, initial=0.0)
        left_out = np.cumsum(coefficients[::-1])[::-1]
        enough = np.flatnonzero(left_out < LEFT_OUT)
        if len(enough):
            return replace(nodes, count=max(FEWEST_NODES, int(enough[0]) + SPARE_NODES))
    return None


def _build(
    rows: EncodedStrings, program: Program, nodes: ChebyshevNodes
) -> tuple[list[_CompressedBlock], Float64Array]:
    """The blocks, and h_i(s, s) at the nodes, nodes x order x strings."""
    layout = gram_layout(len(rows), program.order)
    sizes = [(here.stop - here.start) * columns.stop for here, columns in layout]
    families = [np.empty((program.order, nodes.count, size)) for size in sizes]
    selves = np.empty((nodes.count, program.order, len(rows)))
    for number, point in enumerate(nodes.points):
        values, selves[number] = _normalized(rows, replace(program, gap=point))
        for slices, family in zip(layout, families, strict=True):
            family[:, number] = values[:, *slices].reshape(program.order, -1)
    with one_thread():
        bases = [_basis([family[order] for family in families]) for order in range(program.order)]
    blocks = []
    for rows_here, columns in layout:
        # Taken off the list, so that each family is freed once it is compressed.
        family = families.pop(0)
        shape = (-1, rows_here.stop - rows_here.start, columns.stop)
        weights = [
            (torch.from_numpy(basis).T @ torch.from_numpy(values)).reshape(shape).transpose(0, 1).contiguous().numpy()
            for basis, values in zip(bases, family, strict=True)
        ]
        blocks.append(_CompressedBlock(rows_here, columns, bases, weights))
    return blocks, selves


def _basis(values: list[Float64Array]) -> Float64Array:
    """Orthonormal columns (nodes x rank) that span the functions of the gap decay ``values`` (nodes x pairs)."""
    blocks = [torch.from_numpy(block) for block in values]
    stride = max(1, sum(block.shape[1] for block in blocks) // BASIS_PAIRS)
    family = torch.cat([block[:, ::stride] for block in blocks], dim=1)
    basis = family.new_zeros(len(family), 0)
    while True:
        vectors, singular, _ = torch.linalg.svd(family, full_matrices=False)
        basis, _ = torch.linalg.qr(torch.cat([basis, vectors[:, singular > COMPRESSION]], dim=1))
        # A sample of the pairs may have missed some: those are added until none is left.
        missed = [block - basis @ (basis.T @ block) for block in blocks]
        wrong = [block.abs().amax(dim=0) > COMPRESSION for block in missed]
        if basis.shape[1] == len(family) or not any(bool(columns.any()) for columns in wrong):
            return basis.numpy()
        family = torch.cat([block[:, columns] for block, columns in zip(missed, wrong, strict=True)], dim=1)


def _normalized(strings: EncodedStrings, program: Program) -> tuple[Float64Array, Float64Array]:
    """H_i at one gap decay, order x strings x strings, 0 where a string is shorter than i; and h_i(s, s)."""
    values, _ = order_sums(strings, None, **program.options)
    own = np.diagonal(values, axis1=1, axis2=2).astype(np.float64)
    inverse = np.zeros_like(own)
    np.divide(1.0, np.sqrt(own), out=inverse, where=own > 0)
    return np.einsum("ijk,ij,ik->ijk", values, inverse, inverse, optimize=False), own
