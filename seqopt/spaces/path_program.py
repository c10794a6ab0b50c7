"""The best path of a graph of genes under linear conditions: a mixed-integer program.

Each edge of the graph is a variable, 0 or 1; what flows into a node flows out of it; one unit leaves the first node. Of
the paths alone the linear program has whole solutions, so that branching is needed only for what the conditions break.

References:
    Huangfu, Q., Hall, J. A. J. (2018). Parallelizing the dual revised simplex method. Math. Program. Comput. 10,
        119-142. (HiGHS, which scipy.optimize.milp calls)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.errors import IntractableError, SeqoptError
from seqopt.spaces.codon_graph import CodonGraph
from seqopt.spaces.specifications.base import Cut

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCALE = 1e4
"""The largest weight that the program sees: the solver's tolerance is small beside it."""

TOLERANCE = 1e-6
"""Gap between optimum and bound at which HiGHS stops."""

MOST_ROUNDS = 200
"""Times that conditions are added before an optimum is given up."""

FloatArray = npt.NDArray[np.float64]


class Solution(NamedTuple):
    """An optimum, and what is proven of it.

    Attributes:
        options: The option of each position.
        bound: No gene is better than this.
        proven: Whether the gene is as good as the bound says, to the solver's tolerance.
    """

    options: tuple[int, ...]
    bound: float
    proven: bool


class PathProgram:
    """Best paths under conditions that are added one after another.

    Args:
        graph: Its edges carry the weights.
        gc: The least and the greatest number of G and C; `None` for any.

    Example:
        >>> from seqopt.spaces.codon_scores import CodonScore
        >>> from seqopt.spaces.motifs import MotifAutomaton
        >>> graph = CodonGraph([("AAA", "AAG")] * 2, MotifAutomaton([]), CodonScore({"AAG": 1.0}))
        >>> program = PathProgram(graph)
        >>> program.solve().options
        (1, 1)
        >>> program.add([Cut({0: {"AAG": 1.0}, 1: {"AAG": 1.0}}, 0, 1)])
        >>> sorted(program.solve().options)
        [0, 1]
    """

    def __init__(self, graph: CodonGraph, gc: tuple[int, int] | None = None) -> None:
        from scipy.sparse import coo_array, csr_array

        self.graph = graph
        layers = graph.layers
        starts = np.cumsum([0, *(layer.nodes for layer in layers), 1])
        source = np.concatenate([starts[index] + layer.source for index, layer in enumerate(layers)])
        target = np.concatenate([starts[index + 1] + layer.target for index, layer in enumerate(layers)])
        self._firsts = np.cumsum([0, *(len(layer.source) for layer in layers)])
        self._weights = np.concatenate([layer.weight for layer in layers])
        columns = np.arange(len(source))
        # The last node needs no condition of its own.
        flow = coo_array(
            (
                np.concatenate([np.ones(len(source)), -np.ones(len(target))]),
                (np.concatenate([source, target]), np.concatenate([columns, columns])),
            ),
            shape=(int(starts[-1]), len(source)),
        ).tocsr()[: int(starts[-2])]
        right = np.zeros(flow.shape[0])
        right[0] = 1.0
        self._rows: list[csr_array] = [flow]
        self._low, self._high = [right], [right]
        if gc is not None:
            counts = np.concatenate([layer.gc for layer in layers]).astype(float)
            self._add_rows(csr_array(counts[None, :]), [float(gc[0])], [float(gc[1])])

    def add(self, cuts: Iterable[Cut]) -> None:
        """Add conditions."""
        from scipy.sparse import coo_array

        data: list[float] = []
        rows: list[int] = []
        columns: list[int] = []
        low: list[float] = []
        high: list[float] = []
        for row, cut in enumerate(cuts):
            for position, coefficients in cut.codons.items():
                of_option = np.array([coefficients.get(codon, 0.0) for codon in self.graph.choices[position]])
                values = of_option[self.graph.layers[position].option]
                there = np.flatnonzero(values)
                data += values[there].tolist()
                rows += [row] * len(there)
                columns += (self._firsts[position] + there).tolist()
            low.append(cut.low)
            high.append(cut.high)
        if low:
            shape = (len(low), len(self._weights))
            self._add_rows(coo_array((data, (rows, columns)), shape=shape).tocsr(), low, high)

    def _add_rows(self, matrix: csr_array, low: list[float], high: list[float]) -> None:
        self._rows.append(matrix)
        self._low.append(np.array(low))
        self._high.append(np.array(high))

    def solve(self, weights: FloatArray | None = None, *, seconds: float | None = None) -> Solution | None:
        """The best path that meets all conditions, `None` if there is none.

        Args:
            weights: Other weights of the edges, layer by layer.
            seconds: When to stop, with what has been found and proven by then.

        Raises:
            SeqoptError: If the solver ends without an answer.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import vstack

        own = self._weights if weights is None else weights
        largest = float(np.abs(own).max(initial=0.0))
        scale = SCALE / largest if largest > 0 else 1.0
        matrix = vstack(self._rows, format="csr")
        options = {"mip_rel_gap": 0.0} | ({} if seconds is None else {"time_limit": seconds})
        found = milp(
            -scale * own,
            integrality=np.ones(len(own)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, np.concatenate(self._low), np.concatenate(self._high)),
            options=options,
        )
        if found.status == 2:
            return None
        if found.x is None:
            raise SeqoptError(f"no optimum under these constraints was found: {found.message}")
        taken = np.flatnonzero(found.x > 0.5)
        option = np.concatenate([layer.option for layer in self.graph.layers])[taken]
        # The solver stops at a gap of its tolerance, and takes that for none.
        bound = (TOLERANCE - float(found.mip_dual_bound)) / scale
        return Solution(tuple(option.tolist()), bound, found.status == 0)


def optimum(
    program: PathProgram,
    cuts: Callable[[str], list[Cut]],
    known: list[Cut] | None = None,
    rounds: int = MOST_ROUNDS,
) -> Solution | None:
    """The best path that breaks nothing, `None` if there is none.

    Conditions are added where the best path breaks something, until it does not. As every permitted gene meets them,
    the best path under some that breaks none is the best of all.

    Args:
        program: The conditions that are known already are among its own.
        cuts: Of a gene the conditions that it breaks, empty if it is permitted.
        known: Conditions that are added are added to this list, too.
        rounds: After how many of them it gives up.

    Raises:
        IntractableError: After that many rounds.
    """
    for _ in range(rounds):
        solution = program.solve()
        if solution is None:
            return None
        broken = cuts(program.graph.gene(solution.options))
        if not broken:
            return solution
        program.add(broken)
        if known is not None:
            known += broken
    raise IntractableError(f"no optimum after {rounds} rounds of conditions")
