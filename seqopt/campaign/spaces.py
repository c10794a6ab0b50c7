"""The space of a campaign: made again from its description, or given again and held against that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.errors import InputError
from seqopt.utils.config import described, differences, from_config

if TYPE_CHECKING:
    from seqopt.spaces import Space

PLACES = (
    *("files", "sha256", "column", "folder", "rows", "fingerprints", "attachment_points"),
    *("id_column", "price_column"),
)
"""What of the description of a pool on disk says where its candidates are found, not which they are."""


def restored_space(kept: Mapping[str, Any], given: Space | None = None) -> Space:
    """The space of a campaign.

    Args:
        kept: Its description in the campaign's file (`seqopt.utils.config.described`).
        given: The space, where it is one that no description makes again; others may be given as well.

    Raises:
        CampaignError: If the space has to be given and is not, another one is given, or it cannot be made any more; the
            message says why.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> restored_space(StringSpace("01", 8).config())
        StringSpace('01', length 8: 256 strings)
    """
    from seqopt.spaces import Space

    if given is not None:
        if changed := differences({"space": kept}, {"space": of_same_rules(kept, described(given))}):
            raise CampaignError(f"the campaign was begun in another space than the one given: {'; '.join(changed)}")
        return given
    if kept.get("custom"):
        raise CampaignError(
            f"this campaign searches a custom space ({kept.get('type')}), which its file cannot hold: open it from "
            "Python and give the space, Campaign.open(path, space=...)"
        )
    if kept.get("sieve"):
        # Which is found among the classes that have been defined.
        import seqopt.filters.sieve
    if kept.get("type") == "FormulaSpace":
        import seqopt.objectives.formula_space  # noqa: F401
    try:
        space = from_config(kept)
    except InputError as error:
        raise CampaignError(f"the space of the campaign cannot be made again: {error}") from error
    if not isinstance(space, Space):
        raise CampaignError(f"the space of the campaign is described as a {kept.get('type')}, which is no space")
    return space


def of_same_rules(kept: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
    """A description, with its grammar as `kept` names it if the rules are the same, or the files of a pool on disk if
    the candidates are: a file may have been moved.

    Example:
        >>> kept = {"grammar": "/here/mine.cfg", "fingerprint": "1f", "max_length": 9}
        >>> of_same_rules(kept, {"grammar": "/there/mine.cfg", "fingerprint": "1f", "max_length": 8})
        {'grammar': '/here/mine.cfg', 'fingerprint': '1f', 'max_length': 8}
    """
    if "hashes_sha256" in kept and kept["hashes_sha256"] == found.get("hashes_sha256"):
        rest = {name: value for name, value in found.items() if name not in PLACES}
        return rest | {name: kept[name] for name in PLACES if name in kept}
    same = "grammar" in kept and "grammar" in found and kept.get("fingerprint") == found.get("fingerprint")
    return {**found, "grammar": kept["grammar"]} if same else found
