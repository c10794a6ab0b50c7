"""Spaces as facts in a file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.spaces import Space

OWN = "own"
"""Type of a space that a file cannot hold: one of the user's, or one narrowed by a function."""


def describe_space(space: Space) -> dict[str, Any]:
    """JSON values from which `build_space` makes the same space again, where that is possible.

    A space of another class, or one with an ``accept`` function, is recorded by what its ``facts`` method says, and has
    to be given again whenever the campaign is opened.
    """
    from seqopt.spaces import CodonSpace, DescribedSpace, GrammarSpace, LocalSpace, StringSpace

    if getattr(space, "accept", None) is None:
        if type(space) is StringSpace:
            return {
                "type": "StringSpace",
                "alphabet": list(space.symbols),
                "min_length": space.min_length,
                "max_length": space.max_length,
                "kind": space.kind,
            }
        if type(space) is LocalSpace:
            return {
                "type": "LocalSpace",
                "choices": [list(choices) for choices in space.choices],
                "kind": space.kind,
            }
        if type(space) is CodonSpace:
            return {
                "type": "CodonSpace",
                "protein": space.protein,
                "code": space.code.number,
                "representation": space.representation,
                "start": space.start,
                "stop": space.stop,
                "forbidden": list(space.forbidden),
                "gc": None if space.gc is None else list(space.gc),
                "both_strands": space.both_strands,
            }
        if type(space) is GrammarSpace and space.source is not None:
            return {
                "type": "GrammarSpace",
                "grammar": str(Path(space.source).resolve()) if Path(space.source).is_file() else space.source,
                "min_length": space.min_length,
                "max_length": space.max_length,
                "kind": space.kind,
                "discount": space.facts()["discount"],
                "rules": space.facts()["rules"],
            }
    facts = space.facts() if isinstance(space, DescribedSpace) else {"class": type(space).__qualname__}
    return {"type": OWN, "facts": facts}


def build_space(facts: dict[str, Any], given: Space | None = None) -> Space:
    """The space of a campaign.

    Args:
        facts: What `describe_space` returned.
        given: The space, where it is one that facts cannot make.

    Raises:
        CampaignError: If the space has to be given and is not, or another one is given.
    """
    from seqopt.spaces import CodonSpace, GrammarSpace, LocalSpace, StringSpace

    if given is not None:
        if describe_space(given) != facts:
            raise CampaignError(f"the campaign's space is {facts}, but another one was given: {describe_space(given)}")
        return given
    known = dict(facts)
    kind = known.pop("type", None)
    if kind == "StringSpace":
        return StringSpace(known.pop("alphabet"), **known)
    if kind == "LocalSpace":
        return LocalSpace(known["choices"], kind=known["kind"])
    if kind == "CodonSpace":
        gc = known.pop("gc")
        return CodonSpace(known.pop("protein"), gc=None if gc is None else (gc[0], gc[1]), **known)
    if kind == "GrammarSpace":
        rules = known.pop("rules")
        if Path(known["grammar"]).suffix and not Path(known["grammar"]).exists():
            raise CampaignError(f"the campaign's grammar {known['grammar']} no longer exists: restore it")
        space = GrammarSpace(**known)
        if space.facts()["rules"] != rules:
            raise CampaignError(
                f"the grammar {known['grammar']} has changed since the campaign began: restore it, or begin another one"
            )
        return space
    if kind == OWN:
        raise CampaignError(
            f"this campaign searches a custom space ({known.get('facts')}): open it from Python and give the "
            "space, Campaign.open(path, space=...)"
        )
    raise InputError(f"unknown type of space {kind!r} in a campaign")
