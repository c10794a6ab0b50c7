"""The file of candidates that a campaign searches: read once, and told when it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet


def read_library(
    path: Path, column: str | None, kind: str | None, standardize: bool, decimal_comma: bool = False
) -> tuple[dict[str, Any], CandidateSet, str, list[str]]:
    """Facts of a file of candidates, the space of them, the name of their column, and what of the file is left out."""
    from seqopt.datasets import read_pool
    from seqopt.datasets.sources import located, named
    from seqopt.spaces import CandidateSet

    pool = read_pool(path, column=column, kind=kind, standardize=standardize, decimal_comma=decimal_comma)
    file, part = located(pool.source)
    space = CandidateSet(pool.strings, kind=pool.kind, keys=pool.keys, standardize=pool.standardized)
    facts = {
        "path": named(file.resolve(), part) if file.exists() else pool.source,
        "column": pool.column,
        "kind": pool.kind,
        "standardize": pool.standardized,
        "size": len(space),
        "keys_sha256": _digest(space),
    }
    # How tables of this campaign are written, so that the spreadsheet of its user opens them as it does the library.
    if pool.separator == ";":
        facts["separator"] = ";"
    if decimal_comma:
        facts["decimal_comma"] = True
    return facts, space, pool.column or "string", pool.summary().splitlines()[1:]


def same_library(facts: Mapping[str, Any]) -> CandidateSet:
    """The candidates by the facts that `read_library` returned.

    Raises:
        CampaignError: If the file no longer exists, or holds other candidates.
    """
    from seqopt.datasets.sources import located

    path = Path(facts["path"])
    if path.suffix and not located(path)[0].exists():
        raise CampaignError(
            f"the library {path} no longer exists: restore it, or put it next to the file of the campaign"
        )
    _, space, _, _ = read_library(
        path, facts["column"], facts["kind"], facts["standardize"], bool(facts.get("decimal_comma"))
    )
    if _digest(space) != facts["keys_sha256"]:
        raise CampaignError(
            f"the library {path} has changed since the campaign began: it held {facts['size']:,} candidates then and "
            f"holds {len(space):,} now. Restore it, or start another campaign and import what was measured"
        )
    return space


def _digest(space: CandidateSet) -> str:
    from seqopt.utils.cache import digest

    return digest(space.keys)
