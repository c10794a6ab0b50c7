r"""Gram matrices at any gap decay by Chebyshev interpolation, for fits that try hundreds of gap decays.

For fixed strings the normalised per-order Gram matrices

    H_i(gap)[a, b] = h_i(a, b) / sqrt(h_i(a, a) h_i(b, b))

are smooth functions of the gap decay with values in [0, 1], so that a polynomial through Chebyshev nodes converges
geometrically (Trefethen 2013, chapter 8). Their diagonals h_i(a, a) are one-dimensional and are computed exactly for
every gap decay. The number of nodes is read off the decay of the coefficients for a sample of the strings; the family
of nodal matrices is then compressed by a singular value decomposition, which halves what one evaluation reads.

References:
    Trefethen, L. N. (2013). Approximation Theory and Approximation Practice. SIAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.kernels.covariances import Block, Matrix, Program, gram_layout
from seqopt.kernels.engines import order_sums, self_order_sums
from seqopt.kernels.threads import one_thread

Float64Array = npt.NDArray[np.float64]

TOLERANCE = 1e-8
"""Largest error of a normalised covariance that is accepted."""

SAMPLE_NODES = 96
"""Nodes at which the sample is evaluated, and so the largest number of nodes."""

FEWEST_NODES = 8
"""Smallest number of nodes."""

SAMPLE_STRINGS = 8
"""How many of the longest, of the shortest and of the other strings make up the sample."""

LEFT_OUT = 0.25 * TOLERANCE
"""Sum of the coefficients that the nodes may leave out: the error of interpolation is at most twice that."""

COMPRESSION = 0.1 * TOLERANCE
"""Largest error of the compression."""

BASIS_PAIRS = 500
"""Pairs from which the compression is derived; it is then checked for all."""


@dataclass(frozen=True)
class ChebyshevNodes:
    """Chebyshev nodes of the first kind on an interval.

    Attributes:
        count: Number of nodes.
        lower: Left end.
        upper: Right end.
    """

    count: int
    lower: float
    upper: float

    @property
    def _angles(self) -> Float64Array:
        return (2.0 * np.arange(self.count, dtype=np.float64) + 1.0) * np.pi / (2.0 * self.count)

    @property
    def points(self) -> Float64Array:
        """The nodes, from right to left."""
        return 0.5 * (self.lower + self.upper) + 0.5 * (self.upper - self.lower) * np.cos(self._angles)

    def between(self) -> list[float]:
        """Three points midway between nodes: near either end and in the middle."""
        angles = np.pi / self.count * np.array([1, self.count // 2, self.count - 1])
        return (0.5 * (self.lower + self.upper) + 0.5 * (self.upper - self.lower) * np.cos(angles)).tolist()

    def transform(self) -> Float64Array:
        """Matrix (count x count) from values at the nodes to coefficients of the Chebyshev polynomials."""
        matrix = 2.0 / self.count * np.cos(np.outer(np.arange(self.count), self._angles))
        matrix[0] /= 2.0
        return matrix

    def basis(self, x: float) -> Float64Array:
        """Values and derivatives at x of the polynomials that are 1 at one node and 0 at the others, 2 x count."""
        half = 0.5 * (self.upper - self.lower)
        t = np.clip((x - 0.5 * (self.lower + self.upper)) / half, -1.0, 1.0)
        first, second = np.zeros(self.count), np.zeros(self.count)
        first[0] = second[0] = 1.0
        if self.count > 1:
            first[1], second[1] = t, 2.0 * t
        for k in range(2, self.count):
            first[k] = 2.0 * t * first[k - 1] - first[k - 2]
            second[k] = 2.0 * t * second[k - 1] - second[k - 2]
        # T_k' = k U_{k-1}, with U the polynomials of the second kind.
        slopes = np.concatenate([[0.0], np.arange(1, self.count) * second[:-1]]) / half
        return np.stack([first, slopes]) @ self.transform()


class InterpolatedGram(Matrix):
    """The pairs of a Gram matrix, whose sums come from an interpolant in the gap decay. Made by `build`.

    Attributes:
        nodes: The nodes.
    """

    def __init__(self, rows: EncodedStrings, nodes: ChebyshevNodes, blocks: list[_CompressedBlock]) -> None:
        super().__init__(rows, None)
        self.nodes = nodes
        self._blocks = blocks

    @classmethod
    def build(
        cls, rows: EncodedStrings, program: Program, lower: float, upper: float, budget: int
    ) -> InterpolatedGram | None:
        """An interpolant of the Gram matrix of ``rows`` with an error of at most `TOLERANCE`.

        While it is built it takes nodes x order / 2 Gram matrices (48 to 64 nodes for drug-like molecules), half of
        that afterwards.

        Args:
            rows: The strings.
            program: Engine, order and so on; its gap decay and its precision do not matter.
            lower: Smallest gap decay.
            upper: Largest gap decay.
            budget: Largest number of bytes that it may take.

        Returns:
            `None` if that would need more than `SAMPLE_NODES` nodes, or more memory than the budget, or if Numba is
            missing.
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
            gram = cls(rows, nodes, _build(rows, exact, nodes))
            if gram._error(exact) < TOLERANCE:
                return gram
            more = nodes.count + nodes.count // 2
            nodes = replace(nodes, count=more) if more <= SAMPLE_NODES else None
        return None

    def _error(self, program: Program) -> float:
        """Largest error of H_i at gap decays midway between nodes, where interpolation errs most."""
        ones = np.ones((program.order, len(self.rows)))
        worst = 0.0
        for gap in self.nodes.between():
            exact = _normalized(self.rows, replace(program, gap=gap))
            for block in self._blocks:
                values = block.evaluate(self.nodes.basis(gap)[:1], ones, 0 * ones)[0]
                worst = max(worst, float(np.abs(values - exact[:, block.rows, block.columns]).max(initial=0.0)))
        return worst

    def same_strings(self, gram: Matrix) -> bool:
        """Whether ``gram`` is the Gram matrix of the same strings."""
        return gram.symmetric and gram.shape == self.shape and gram.key[-1] == self.key[-1]

    def blocks(self, program: Program, slopes: bool, weights: Tensor | None = None) -> Iterator[Block]:
        """See `seqopt.kernels.covariances.Pairs.blocks`; derivatives are those of the interpolant."""
        at = self.nodes.basis(program.gap)[: 1 + slopes]
        own, own_slopes = self_order_sums(self.rows, derivative=True, **program.options)
        assert own_slopes is not None
        roots = np.sqrt(own, dtype=np.float64)
        root_slopes = np.zeros_like(roots)
        np.divide(0.5 * own_slopes, roots, out=root_slopes, where=own > 0)
        for block in self._blocks:
            sums = torch.from_numpy(block.evaluate(at, roots, root_slopes))
            if weights is not None:
                sums = torch.tensordot(sums, weights, ([1], [0]))[:, None]
            values, derivatives = sums[0][:, None], sums[1][:, None] if slopes else None
            yield Block(slice(0, 1), block.rows, block.columns, values, derivatives)


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
    nodes = ChebyshevNodes(SAMPLE_NODES, lower, upper)
    values = [_normalized(sample, replace(program, gap=point)).ravel() for point in nodes.points]
    coefficients = np.abs(nodes.transform() @ np.stack(values)).max(axis=1)
    left_out = np.cumsum(coefficients[::-1])[::-1]
    enough = np.flatnonzero(left_out < LEFT_OUT)
    return ChebyshevNodes(max(FEWEST_NODES, int(enough[0])), lower, upper) if len(enough) else None


def _build(rows: EncodedStrings, program: Program, nodes: ChebyshevNodes) -> list[_CompressedBlock]:
    layout = gram_layout(len(rows), program.order)
    sizes = [(here.stop - here.start) * columns.stop for here, columns in layout]
    families = [np.empty((program.order, nodes.count, size)) for size in sizes]
    for number, point in enumerate(nodes.points):
        values = _normalized(rows, replace(program, gap=point))
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
    return blocks


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


def _normalized(strings: EncodedStrings, program: Program) -> Float64Array:
    """H_i at one gap decay, order x strings x strings; 0 where a string has no sub-sequence of that order."""
    values, _ = order_sums(strings, None, **program.options)
    own = np.diagonal(values, axis1=1, axis2=2)
    inverse = np.zeros_like(own, order="C")
    np.divide(1.0, np.sqrt(own), out=inverse, where=own > 0)
    return np.einsum("ijk,ij,ik->ijk", values, inverse, inverse, optimize=False)
