"""The reason for a suggestion in words, for terminals and pages; nothing heavy is loaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqopt.strings.mutations import short_name
from seqopt.utils.mean_effect import MeanEffect
from seqopt.utils.parameter_names import parameters_in_words


def parameter_lines(model: Mapping[str, Any]) -> list[str]:
    """The parameters of the model that suggested last, a line for each kernel where it has several.

    Args:
        model: Its summary, as `seqopt.campaign.predictions.snapshot_of` makes it.

    Example:
        >>> parameter_lines({"parameters": {"gap_decay": 0.25, "noise_variance": 0.125}})
        ['parameters: gap decay 0.25, noise variance 0.125']
    """
    lines = parameters_in_words(model.get("parameters", {}), model.get("kernel_types"))
    return [f"parameters: {line}" if place == 0 else f"  {line}" for place, line in enumerate(lines)]


def in_words(reason: Mapping[str, Any]) -> str:
    """Why a string was chosen, in a few words: its label, its rank and its chance; empty where nothing is known.

    Args:
        reason: As `Reason.to_json` gave it, or an older campaign holds it.

    Example:
        >>> in_words({"kind": "exploit", "rank": 3, "of": 950, "improvement": 0.12})
        'exploit: rank 3 of 950, 12 % to beat the best'
        >>> in_words({"kind": "explore", "rank": 9, "of": 15, "among": "measured"})
        'explore: rank 9 beside 15 measured'
        >>> in_words({"kind": "exploit", "rank": 1, "of": 950, "beside": "once more in this batch"})
        'exploit: rank 1 of 950 (once more in this batch)'
        >>> in_words({"kind": "random"}), in_words({})
        ('random', '')
    """
    parts = []
    if reason.get("rank") is not None and reason.get("of") is not None:
        measured = reason.get("among") == "measured"
        others = f"beside {reason['of']:,} measured" if measured else f"of {reason['of']:,}"
        parts.append(f"rank {reason['rank']:,} {others}")
        if reason.get("beside"):
            parts[-1] += f" ({reason['beside']})"
    if reason.get("improvement") is not None:
        parts.append(f"{percent(reason['improvement'])} to beat the best")
    kind = str(reason.get("kind", ""))
    text = f"{kind}: {', '.join(parts)}" if parts else kind
    return "; ".join(filter(None, (text, told_in_words(reason))))


def told_in_words(reason: Mapping[str, Any]) -> str:
    """What a measurement costs, and how much it tells of the target; empty where there is only one way to measure.

    Example:
        >>> reason = {"way": "docking", "cost": 0.01, "tells": 0.3, "target": "assay", "target_cost": 1.0}
        >>> told_in_words(reason | {"target_tells": 0.9})
        'docking for 0.01 tells 30 % of what is unknown of its assay (an assay for 1: 90 %)'
        >>> told_in_words({"way": "assay", "cost": 1.0, "tells": 0.9})
        'assay for 1 tells 90 % of what is unknown of it'
        >>> told_in_words({"way": "plate 2", "tells": 0.2})
        'plate 2 tells 20 % of what is unknown of it'
    """
    way, cost, tells = (reason.get(name) for name in ("way", "cost", "tells"))
    if way is None or (cost is None and tells is None):
        return ""
    text = str(way) if cost is None else f"{way} for {cost:g}"
    if tells is None:
        return text
    target, of = reason.get("target"), "it"
    beside = ""
    if target is not None:
        of = f"its {target}"
        if reason.get("target_tells") is not None:
            article = "an" if str(target)[:1].lower() in "aeiou" else "a"
            beside = f" ({article} {target} for {reason['target_cost']:g}: {percent(reason['target_tells'])})"
    return f"{text} tells {percent(reason['tells'])} of what is unknown of {of}{beside}"


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number of things.

    Args:
        number: How many there are.
        singular: What one of them is called.
        plural: What several are called; by default with an s.

    Example:
        >>> counted(1, "row"), counted(0, "row"), counted(1500, "batch", "batches")
        ('1 row', '0 rows', '1,500 batches')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def percent(share: float) -> str:
    """A probability in percent: what is not 0 or 1 is not rounded to it.

    Example:
        >>> [percent(share) for share in (0.0, 1e-5, 0.004, 0.12, 0.9999, 1.0)]
        ['0 %', '< 0.1 %', '0.4 %', '12 %', '> 99.9 %', '100 %']
    """
    number = 100 * share
    if 0 < number < 0.1:
        return "< 0.1 %"
    if 99.9 < number < 100:
        return "> 99.9 %"
    return f"{number:.0f} %" if 1 <= number <= 99 or number in (0, 100) else f"{number:.1f} %"


def nearest_in_words(reason: Mapping[str, Any], parent: str | None = None) -> str:
    """The nearest measured string, its value, how similar it is and what differs; empty where it is not known.

    Args:
        reason: As `in_words` has it.
        parent: The parent, if one is known: its variants are called by what they change of it.

    Example:
        >>> reason = {"nearest": "CCO", "similarity": 0.7143, "value": 6.2, "difference": "−*O +*N"}
        >>> nearest_in_words(reason), nearest_in_words({"nearest": "CCO", "similarity": 0.5})
        ('CCO = 6.2 (0.71): −*O +*N', 'CCO (0.50)')
        >>> nearest_in_words({"nearest": "CCO", "similarity": 0.5, "value": 0.1, "censored": "<"})
        'CCO < 0.1 (0.50)'
        >>> nearest_in_words({"nearest": "CCO", "similarity": 0.5, "value": 1.0, "told": "hit"})
        'CCO = hit (0.50)'
        >>> nearest_in_words({"nearest": "MKVLTA", "similarity": 0.5, "value": 1.0}, "MKVLSA")
        'S5T = 1 (0.50)'
    """
    from seqopt.data import shown_number

    nearest, similarity = reason.get("nearest"), reason.get("similarity")
    if not nearest:
        return ""
    value, text = reason.get("value"), short_name(parent, str(nearest)) or str(nearest)
    if reason.get("told"):
        value, text = None, f"{text} = {reason['told']}"
    text += "" if value is None else f" {reason.get('censored') or '='} {shown_number(value)}"
    text += "" if similarity is None else f" ({similarity:.2f})"
    return text + (f": {reason['difference']}" if reason.get("difference") else "")


def without_value(failures: int, lost: int) -> str:
    """How many measurements failed, and how many were lost, if any were.

    Example:
        >>> without_value(1, 0), without_value(0, 2)
        ('1 failure', '0 failures, 2 losses')
    """
    return counted(failures, "failure") + (f", {counted(lost, 'loss', 'losses')}" if lost else "")


def means_in_words(model: Mapping[str, Any]) -> list[str]:
    """What a model had learned of its prior mean, a line for each coefficient; none where it has no prior mean.

    Args:
        model: What `seqopt.campaign.predictions.snapshot_of` summarised.

    Example:
        >>> means_in_words({"mean": [{"name": "guess", "estimate": 0.4, "lower": 0.3, "upper": 0.5}]})
        ['prior mean: results are 0.40 standard deviations better where guess is one higher (90 %: 0.30 to 0.50)']
    """
    return [MeanEffect(**one).describe() for one in model.get("mean", ())]
