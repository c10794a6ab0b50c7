"""Pools of candidate strings and public data sets.

`read_pool` reads a user's file, `load` a public data set by name. Nothing here imports the models or the
loop.
"""

from seqopt.datasets.named import (
    DATASETS,
    Dataset,
    load,
    load_enamine10k_docking,
    load_esol,
    load_freesolv,
    load_lipophilicity,
    load_photoswitch,
    load_zinc250k,
)
from seqopt.datasets.points import Points, read_points
from seqopt.datasets.pools import Duplicate, Pool, Rejected, read_pool, write_rejected
from seqopt.datasets.proteins import Protein, read_proteins
from seqopt.datasets.zinc_scores import penalized_logp_of_zinc
from seqopt.utils.cache import cache_dir

__all__ = [
    "DATASETS",
    "Dataset",
    "Duplicate",
    "Points",
    "Pool",
    "Protein",
    "Rejected",
    "cache_dir",
    "load",
    "load_enamine10k_docking",
    "load_esol",
    "load_freesolv",
    "load_lipophilicity",
    "load_photoswitch",
    "load_zinc250k",
    "penalized_logp_of_zinc",
    "read_points",
    "read_pool",
    "read_proteins",
    "write_rejected",
]
