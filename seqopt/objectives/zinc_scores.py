"""The penalised logP of all of ZINC 250k, computed once.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6.4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.datasets.named import load_zinc250k
from seqopt.objectives.molecules import penalized_logp
from seqopt.utils.cache import digest, read_cached, write_cached
from seqopt.utils.workers import Progress, map_strings


def penalized_logp_of_zinc(*, ring: str = "cycle_basis", progress: Progress | None = None) -> npt.NDArray[np.float64]:
    """Penalised logP of each string of `load_zinc250k`, in its order.

    That takes over two minutes on one core; it is done in several processes and kept in the cache folder, by
    the version of RDKit and the strings.

    Args:
        ring: See `seqopt.objectives.penalized_logp`.
        progress: Called with the numbers of molecules scored and in all, when they are not in the cache.

    Returns:
        249,456 scores, all finite.
    """
    return cached_scores(
        "seqopt.objectives.zinc_scores:penalized_logp_list",
        load_zinc250k(),
        f"penalized_logp-{ring}",
        progress,
        ring=ring,
    )


def cached_scores(
    function: str, strings: list[str], name: str, progress: Progress | None = None, **arguments: Any
) -> npt.NDArray[np.float64]:
    """Scores of ``strings`` by ``function`` (see `seqopt.utils.workers.map_strings`), from the cache if
    possible.

    Args:
        function: ``"module:name"``.
        strings: The strings.
        name: Begins the name of the cache file; it must tell functions and their arguments apart.
        progress: See `penalized_logp_of_zinc`.
        arguments: Passed to ``function``.
    """
    import rdkit

    file = f"{Path(name).name}-{digest(strings)[:24]}-rdkit{rdkit.__version__}.txt"
    cached = read_cached(file, len(strings))
    if cached is None:
        values = map_strings(function, strings, arguments=arguments, progress=progress)
        # repr of a float reads back as the same float.
        cached = [repr(float(value)) for value in values]
        write_cached(file, cached)
    return np.array(cached, dtype=np.float64)


def penalized_logp_list(strings: list[str], ring: str) -> list[float]:
    """`seqopt.objectives.penalized_logp` as a list, which can be sent as JSON."""
    scores: list[float] = penalized_logp(strings, ring=ring).tolist()
    return scores
