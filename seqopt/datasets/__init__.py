"""Pools of candidate strings, public data sets, and tables of text.

`read_pool` reads a user's file, `load` a public data set by name, `read_sheet` the cells of a table, whatever program
saved it. Nothing here imports the models or the loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqopt.datasets.configurations import CONFIGURATIONS, Configurations, load_configurations
    from seqopt.datasets.named import (
        DATASETS,
        Dataset,
        load,
        load_enamine10k_docking,
        load_esol,
        load_freesolv,
        load_gb1,
        load_lipophilicity,
        load_photoswitch,
        load_zinc250k,
    )
    from seqopt.datasets.points import Points, read_points
    from seqopt.datasets.pool_store import PoolStore, prepare_pool
    from seqopt.datasets.pools import Duplicate, Pool, Rejected, read_pool, write_rejected
    from seqopt.datasets.proteins import Protein, read_proteins
    from seqopt.datasets.sheets import Sheet, read_sheet, write_sheet
    from seqopt.datasets.thrombin import Thrombin, load_thrombin
    from seqopt.utils.cache import cache_dir

_HOMES = {
    **dict.fromkeys(("CONFIGURATIONS", "Configurations", "load_configurations"), "seqopt.datasets.configurations"),
    **dict.fromkeys(
        (
            "DATASETS",
            "Dataset",
            "load",
            "load_enamine10k_docking",
            "load_esol",
            "load_freesolv",
            "load_gb1",
            "load_lipophilicity",
            "load_photoswitch",
            "load_zinc250k",
        ),
        "seqopt.datasets.named",
    ),
    **dict.fromkeys(("Points", "read_points"), "seqopt.datasets.points"),
    **dict.fromkeys(("Duplicate", "Pool", "Rejected", "read_pool", "write_rejected"), "seqopt.datasets.pools"),
    **dict.fromkeys(("PoolStore", "prepare_pool"), "seqopt.datasets.pool_store"),
    **dict.fromkeys(("Protein", "read_proteins"), "seqopt.datasets.proteins"),
    **dict.fromkeys(("Sheet", "read_sheet", "write_sheet"), "seqopt.datasets.sheets"),
    **dict.fromkeys(("Thrombin", "load_thrombin"), "seqopt.datasets.thrombin"),
    "cache_dir": "seqopt.utils.cache",
}

__all__ = [
    "CONFIGURATIONS",
    "DATASETS",
    "Configurations",
    "Dataset",
    "Duplicate",
    "Points",
    "Pool",
    "PoolStore",
    "Protein",
    "Rejected",
    "Sheet",
    "Thrombin",
    "cache_dir",
    "load",
    "load_configurations",
    "load_enamine10k_docking",
    "load_esol",
    "load_freesolv",
    "load_gb1",
    "load_lipophilicity",
    "load_photoswitch",
    "load_thrombin",
    "load_zinc250k",
    "prepare_pool",
    "read_points",
    "read_pool",
    "read_proteins",
    "read_sheet",
    "write_rejected",
    "write_sheet",
]


def __getattr__(name: str) -> Any:
    # The cells of a results table need neither numpy nor RDKit.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqopt.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
