"""Values in another unit than the campaign's, converted where somebody asks for it.

Concentrations are converted between molar units (M, mM, uM, nM, pM, fM), and to and from their negative decadic
logarithms, as in pIC50 = -log10(IC50 / (mol/l)): a pIC50 of 6 is 1 uM or 1,000 nM. A logarithm is only converted to a
quantity of its own name (pKi to Ki, not to IC50), since how one follows from the other depends on the assay. The unit
-log10 M, which names no quantity, is that of all these logarithms.

Standard errors are converted along: by the same factor between concentrations, and between a concentration c and
p = -log10(c) by the delta method, SE(p) = SE(c) / (c ln 10) and SE(c) = c ln 10 SE(p), which is the first order of a
Taylor series and right where the error is small against the value. The mean of several logarithms is the logarithm of a
geometric mean: replicates are converted one by one.

References:
    Neubig, R. R., Spedding, M., Kenakin, T., Christopoulos, A. (2003). International Union of Pharmacology Committee on
        Receptor Nomenclature and Drug Classification. XXXVIII. Pharmacol. Rev. 55, 597-606.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

from seqopt.campaign.entries import ResultEntry
from seqopt.campaign.rows import Settings
from seqopt.datasets.sheets import plain_name
from seqopt.errors import InputError

_MOLAR = {"M": 0, "mM": -3, "uM": -6, "nM": -9, "pM": -12, "fM": -15}
_PREFIXES = {"": "M", "m": "mM", "u": "uM", "n": "nM", "p": "pM", "f": "fM"}

QUANTITIES = ("IC50", "EC50", "AC50", "XC50", "CC50", "GI50", "MIC", "Ki", "Kd", "KB", "A2")
"""Concentrations of which people give the negative logarithm, under the name with a p before it."""

_LOG = "-log10 M"
_LOG_OF = re.compile(r"[-\u2212\u2013]\s*log(?:_?10|\u2081\u2080)?\s*[(\[]?\s*([^()\[\]]+?)\s*[)\]]?", re.IGNORECASE)

_LOGARITHM = re.compile(
    r"[-\u2212]?\s*(?:[cCxX]?[Ll]og(?:_?10|_?[A-Z](?:[ _]?(?:pH ?)?\d+(?:[.,]\d+)?)?)?|lg)(?![A-Za-z0-9])"
)
"""Names and units of decadic logarithms: log10 x, lg x, logP, cLogP, LogD7.4."""

_LN10 = math.log(10)


@dataclass(frozen=True)
class Scale:
    """What numbers are given in.

    Attributes:
        name: As it is written.
        exponent: The power of ten of the unit in mol/l; `None` for a logarithm.
        quantity: Of a logarithm, what it is of: ``"IC50"`` of ``pIC50``; `None` for one of any concentration.
    """

    name: str
    exponent: int | None
    quantity: str | None = None

    def fits(self, other: Scale) -> bool:
        """Whether numbers of both may be the same: logarithms of two quantities are not.

        Example:
            >>> one, two, three = map(scale_of, ("pIC50", "-log10 M", "pKi"))
            >>> one.fits(two), two.fits(three), one.fits(three)
            (True, True, False)
        """
        known = None in (self.quantity, other.quantity)
        return self.exponent == other.exponent and (known or self.quantity == other.quantity)


@dataclass(frozen=True)
class Conversion:
    """From one scale to another.

    Example:
        >>> conversion = Conversion(Scale("nM", -9), Scale("pIC50", None, "IC50"))
        >>> conversion.value(1000.0), round(conversion.standard_error(1000.0, 100.0), 6), conversion.reverses
        (6.0, 0.043429, True)
    """

    source: Scale
    target: Scale

    @property
    def reverses(self) -> bool:
        """Whether larger values become smaller: a limit then lies on the other side."""
        return (self.source.exponent is None) != (self.target.exponent is None)

    def value(self, number: float) -> float:
        """A value on the other scale.

        Raises:
            InputError: For a concentration that has no logarithm, or a logarithm without a concentration.
        """
        source, target = self.source.exponent, self.target.exponent
        if source is not None and target is not None:
            return _times_ten(number, source - target)
        if source is not None:
            if number <= 0:
                raise InputError(
                    f"has no logarithm: a positive number of {self.source.name} becomes {self.target.name}"
                )
            return -(math.log10(number) + source)
        if target is not None:
            if not abs(number) <= 30:
                raise InputError(f"is not a {self.source.name}: expected a number such as 6.5")
            return float(10.0 ** (-number - target))
        return number

    def standard_error(self, number: float, error: float) -> float:
        """The standard error of the converted value, from a value and its standard error on this scale."""
        source, target = self.source.exponent, self.target.exponent
        if source is not None and target is not None:
            return _times_ten(error, source - target)
        if source is not None:
            return error / (number * _LN10)
        if target is not None:
            return self.value(number) * _LN10 * error
        return error

    def describe(self) -> str:
        """What is done, in a sentence."""
        by = " (standard errors by the delta method)" if self.reverses else ""
        return f"values are converted from {self.source.name} to {self.target.name}{by}"


def scale_of(text: str) -> Scale | None:
    """The scale that a text names; `None` for any other text.

    The case of a unit counts (mM is not MM, and nm is a length), that of a quantity does not.

    Example:
        >>> [scale.name for scale in map(scale_of, ["nM", "\\u00b5M", "umol/l", "pic50"]) if scale]
        ['nM', 'uM', 'uM', 'pIC50']
        >>> scale_of("-log10 M").name, scale_of("-log(mol/l)").name
        ('-log10 M', '-log10 M')
        >>> scale_of("nm"), scale_of("%")
        (None, None)
    """
    plain = text.strip().replace("\u00b5", "u").replace("\u03bc", "u")
    litre = re.fullmatch(r"([munpf]?)mol(?:ar)?(?:\s*/\s*[lL]|\s*[lL]\s*\^?[-\u2212\u207b][1\u00b9]|(?<=ar))", plain)
    name = _PREFIXES[litre[1]] if litre else plain
    if name in _MOLAR:
        return Scale(name, _MOLAR[name])
    folded = plain.casefold()
    for quantity in QUANTITIES:
        if folded == f"p{quantity}".casefold():
            return Scale(f"p{quantity}", None, quantity)
    if logarithm := _LOG_OF.fullmatch(plain):
        of = scale_of(logarithm[1])
        return Scale(_LOG, None) if of is not None and of.exponent == 0 else None
    return None


def campaign_scale(settings: Settings) -> Scale | None:
    """The scale of a campaign's values: by its unit or, if it has none, by the name of what is measured.

    Example:
        >>> campaign_scale(Settings("IC50", unit="uM")).name, campaign_scale(Settings("pKi")).name
        ('uM', 'pKi')
        >>> campaign_scale(Settings("yield", unit="%"))
    """
    if settings.unit:
        return scale_of(settings.unit)
    return unit_of_column(settings.objective)


def are_logarithms(settings: Settings) -> bool:
    """Whether the values of a campaign are decadic logarithms, by their unit or their name.

    Example:
        >>> [are_logarithms(Settings(name)) for name in ("pIC50", "logP", "LogD7.4", "log10 titre", "logit", "yield")]
        [True, True, True, True, False, False]
        >>> are_logarithms(Settings("potency", unit="-log10 M")), are_logarithms(Settings("IC50", unit="nM"))
        (True, False)
    """
    scales = [scale_of(settings.unit or ""), unit_of_column(settings.objective)]
    if any(scale is not None and scale.exponent is None for scale in scales):
        return True
    return any(_LOGARITHM.match(text.strip()) for text in (settings.unit or "", settings.objective))


def conversion_to(settings: Settings, unit: str) -> Conversion | None:
    """How values in a unit become those of a campaign; `None` where they are that already.

    Raises:
        InputError: For a unit that is not known, or does not fit the campaign's.
    """
    source, target = scale_of(unit), campaign_scale(settings)
    if settings.unit is not None and unit.strip() == settings.unit.strip():
        return None
    known = f"{', '.join(_MOLAR)}, {_LOG}, and p{', p'.join(QUANTITIES)}"
    if source is None:
        lengths = unit.strip().casefold() in {name.casefold() for name in _MOLAR}
        hint = "; the case of its letters counts" if lengths else ""
        raise InputError(f"the unit {unit!r} cannot be converted: known are {known}{hint}")
    if target is None:
        has = f"the unit {settings.unit!r}" if settings.unit else f"no unit for {settings.objective!r}"
        raise InputError(f"this campaign has {has}, to which {source.name} cannot be converted: known are {known}")
    if source.quantity is not None and target.quantity is not None and source.quantity != target.quantity:
        raise InputError(f"{source.name} is not {target.name}: how one follows from the other depends on the assay")
    logarithm = source if source.exponent is None else target
    other = _quantity_named(settings.objective)
    if logarithm.quantity is not None and other is not None and other != logarithm.quantity:
        raise InputError(
            f"{logarithm.name} is not the logarithm of {other}: how one follows from the other depends on the assay"
        )
    return None if source.fits(target) else Conversion(source, target)


def converted(entry: ResultEntry, conversion: Conversion) -> ResultEntry:
    """A result with its value and standard error on the scale of the campaign; what else was measured stays as it is.

    Raises:
        InputError: For a value that has none there; it says why.
    """
    if entry.value is None:
        return entry
    error = entry.standard_error
    try:
        changed: dict[str, Any] = {"value": conversion.value(entry.value)}
        if error is not None:
            changed["standard_error"] = conversion.standard_error(entry.value, error)
    except InputError as problem:
        raise InputError(f"{entry.value!r} {problem}") from problem
    if conversion.reverses and entry.censored is not None:
        # More than 100 uM is a pIC50 of less than 4.
        changed["censored"] = "<" if entry.censored == ">" else ">"
    return replace(entry, **changed)


def unit_of_column(name: str) -> Scale | None:
    """The scale that the name of a column says its values are in.

    Example:
        >>> unit_of_column("IC50 (nM)").name, unit_of_column("Ki_uM").name, unit_of_column("pIC50").name
        ('nM', 'uM', 'pIC50')
        >>> unit_of_column("potency -log10(M)").name, unit_of_column("potency (-log10 M)").name
        ('-log10 M', '-log10 M')
        >>> unit_of_column("IC50")
    """
    words = re.split(r"[\s_]+", name.strip())
    # The brackets of -log10(M) hold the unit of what the logarithm is of.
    for last in (" ".join(words[-2:]), words[-1]):
        if scale := scale_of(last):
            return scale
    bracketed = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$", name)
    if bracketed and (scale := scale_of(bracketed[1])):
        return scale
    return scale if (scale := scale_of(words[0])) and scale.exponent is None else None


def value_names(settings: Settings, unit: str | None) -> list[str]:
    """What a column of values may be called, where the values are in the campaign's unit (`None`) or another.

    Example:
        >>> value_names(Settings("IC50", unit="uM"), None), value_names(Settings("IC50", unit="uM"), "nM")
        (['IC50', 'IC50 uM'], ['IC50', 'IC50 nM'])
        >>> value_names(Settings("pIC50"), "nM"), value_names(Settings("IC50", unit="nM"), "pIC50")
        (['IC50', 'IC50 nM'], ['pIC50'])
        >>> value_names(Settings("potency", unit="-log10 M"), "pIC50")
        ['potency', 'potency -log10 M', 'pIC50']
    """
    conversion = None if unit is None else conversion_to(settings, unit)
    if conversion is None:
        same = None if unit is None else scale_of(unit)
        names = [settings.objective] + ([f"{settings.objective} {settings.unit}"] if settings.unit else [])
        return names if same is None or same.quantity is None else [*names, same.name]
    source, named = conversion.source, _quantity_named(settings.objective)
    if source.exponent is None:
        if source.quantity is not None:
            return [source.name]
        bare = settings.objective if named is None else f"p{named}"
        return [bare, f"{bare} {source.name}"]
    units = [source.name] + (["\u00b5M"] if source.name == "uM" else [])
    if not conversion.reverses:
        bare = re.sub(r"\s*[(\[][^()\[\]]+[)\]]\s*$", "", settings.objective)
        return [bare, *(f"{bare} {name}" for name in units)]
    quantity = named or conversion.target.quantity or settings.objective
    return [quantity, *(f"{quantity} {name}" for name in units)]


def foreign_unit(settings: Settings, column: str, unit: str | None) -> str | None:
    """The unit that the name of a column of values says, where the values are taken to be in another."""
    said = unit_of_column(column)
    meant = campaign_scale(settings) if unit is None else scale_of(unit)
    return said.name if said is not None and meant is not None and not said.fits(meant) else None


def way_out(settings: Settings, column: str) -> str:
    """How a column in another unit can be recorded, by its name; empty where it cannot be converted."""
    said = foreign_unit(settings, column, None)
    if said is None:
        return ""
    try:
        conversion_to(settings, said)
    except InputError:
        return ""
    names = {plain_name(name) for name in value_names(settings, said)}
    if plain_name(column) in names:
        return f"--unit {shlex.quote(said)} (unit={said!r}) converts it"
    options = f"--unit {shlex.quote(said)} --column {shlex.quote(column)}"
    return f"{options} (unit={said!r}, value_column={column!r}) converts it"


def _quantity_named(objective: str) -> str | None:
    """The quantity in the name of an objective, be it itself or its logarithm."""
    for word in re.findall(r"[^\W_]+", objective):
        for quantity in QUANTITIES:
            if word.casefold() in (quantity.casefold(), f"p{quantity}".casefold()):
                return quantity
    return None


def _times_ten(number: float, exponent: int) -> float:
    # Division by a power of ten is exact to the last digit where multiplication by its inverse is not.
    return number * 10.0**exponent if exponent >= 0 else number / 10.0**-exponent
