"""Properties of molecules that a filter may ask for, each computed by RDKit, and computed once.

Costs are milliseconds for a molecule of ZINC 250k on one core, besides 0.11 ms to read its SMILES
(`seqopt bench filters`): 0.01 or less for weights and counts, 0.1 for rotatable bonds, 0.3 for logP, 0.5 for
the SA score, 1.1 for QED, 0.02 for a substructure, 0.3 for Brenk's alerts and 2.2 for PAINS. What is cheap is therefore
computed first.

References:
    Baell, J. B., Holloway, G. A. (2010). New substructure filters for removal of pan assay interference compounds
        (PAINS) from screening libraries. J. Med. Chem. 53, 2719-2740.
    Brenk, R. et al. (2008). Lessons learnt from assembling screening libraries for drug discovery for neglected
        diseases. ChemMedChem 3, 435-444.
    Bickerton, G. R. et al. (2012). Quantifying the chemical beauty of drugs. Nat. Chem. 4, 90-98.
    Ertl, P., Schuffenhauer, A. (2009). Estimation of synthetic accessibility score of drug-like molecules. J.
        Cheminform. 1, 8.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from seqopt.errors import InputError
from seqopt.strings.identity import LONGEST_SMILES, parse_smiles, quiet_rdkit, quoted

Compute = Callable[[Any], float]


@dataclass(frozen=True)
class Property:
    """A number that a molecule has.

    Attributes:
        name: What it is called.
        meaning: In words.
        descriptor: Name of the function in ``rdkit.Chem.Descriptors``; empty for those that are not there.
        cost: Milliseconds for a molecule.
        aliases: Other names.
    """

    name: str
    meaning: str
    descriptor: str
    cost: float
    aliases: tuple[str, ...] = ()


PROPERTIES: dict[str, Property] = {
    item.name: item
    for item in (
        Property("MW", "molecular weight with hydrogens, g/mol", "MolWt", 0.003, ("molecular weight", "weight")),
        Property("logP", "octanol/water partition, Wildman and Crippen", "MolLogP", 0.27, ("clogp", "crippen")),
        Property("TPSA", "topological polar surface area, square angstrom", "TPSA", 0.011, ("psa",)),
        Property("HBD", "hydrogen-bond donors", "NumHDonors", 0.009, ("donors", "h bond donors")),
        Property("HBA", "hydrogen-bond acceptors", "NumHAcceptors", 0.04, ("acceptors", "h bond acceptors")),
        Property("rotatable_bonds", "rotatable bonds", "NumRotatableBonds", 0.11, ("rotatable", "rotb", "rb")),
        Property("rings", "rings", "RingCount", 0.001, ("ring count",)),
        Property("aromatic_rings", "aromatic rings", "NumAromaticRings", 0.005),
        Property("heavy_atoms", "atoms other than hydrogen", "HeavyAtomCount", 0.001, ("hac",)),
        Property("heteroatoms", "atoms other than carbon and hydrogen", "NumHeteroatoms", 0.007),
        Property("fsp3", "share of carbon atoms that are sp3", "FractionCSP3", 0.003, ("fraction csp3",)),
        Property("charge", "formal charge", "", 0.001, ("formal charge", "net charge")),
        Property("SA", "synthetic accessibility, 1 (easy) to 10", "", 0.45, ("sa score", "sas")),
        Property("QED", "drug-likeness, 0 to 1", "qed", 1.1),
    )
}
"""Properties with short names. Any other descriptor of RDKit may be asked for by its own name, such as ``BertzCT``."""

CATALOGS = ("PAINS", "BRENK", "NIH")
"""The best-known catalogues of alerts; `catalog_names` lists all that RDKit has."""

_OTHER_COST = 0.5
_ALERT_COSTS = {"BRENK": 0.25, "ZINC": 0.11, "NIH": 1.15, "PAINS_A": 0.11, "PAINS_B": 0.39, "CHEMBL": 3.9, "ALL": 9.8}
_ALERT_COST = 2.2
_SMARTS_COST = 0.02

PROPERTY, SMARTS, ALERTS = "property ", "smarts ", "alerts "
"""How the names of features begin: a number, whether a substructure is there, whether an alert is."""


def property_name(name: str) -> str:
    """The name of a property as this module writes it, whatever the case, blanks and underscores of ``name``.

    Raises:
        InputError: For an unknown one; the message lists the names, the nearest first.

    Example:
        >>> property_name("molecular weight"), property_name("mollogp"), property_name("bertzct")
        ('MW', 'logP', 'BertzCT')
    """
    wanted = _plain(name)
    for item in PROPERTIES.values():
        if wanted in map(_plain, (item.name, item.descriptor, *item.aliases)) and wanted:
            return item.name
    others = {_plain(other): other for other in _descriptors()}
    if wanted in others:
        return others[wanted]
    own = {_plain(word): item.name for item in PROPERTIES.values() for word in (item.name, *item.aliases)}
    # Of two names that are equally near, the short one is meant.
    close = difflib.get_close_matches(wanted, own, n=1) or difflib.get_close_matches(wanted, others, n=1, cutoff=0.8)
    guess = f" Did you mean {(others | own)[close[0]]}?" if close else ""
    raise InputError(
        f"there is no property {name!r}: choose {', '.join(PROPERTIES)}, or any descriptor of RDKit by its name.{guess}"
    )


def catalog_name(name: str) -> str:
    """The name of a catalogue of alerts as RDKit writes it.

    Raises:
        InputError: For an unknown one; the message lists the names.

    Example:
        >>> catalog_name("pains")
        'PAINS'
    """
    known = {_plain(item): item for item in catalog_names()}
    wanted = _plain(name)
    if wanted not in known:
        close = difflib.get_close_matches(wanted, known, n=1)
        raise InputError(
            f"there is no catalogue of alerts {name!r}: choose {', '.join(known.values())}."
            + (f" Did you mean {known[close[0]]}?" if close else "")
        )
    return known[wanted]


def catalog_names() -> list[str]:
    """All catalogues of alerts that this RDKit has."""
    from rdkit.Chem.FilterCatalog import FilterCatalogParams

    return list(FilterCatalogParams.FilterCatalogs.names)


def check_smarts(smarts: str) -> None:
    """Refuse what RDKit does not read as SMARTS.

    Raises:
        InputError: With what RDKit says of it.
    """
    from rdkit import Chem

    if len(smarts) > LONGEST_SMILES:
        raise InputError(
            f"a SMARTS of {len(smarts):,} characters ({quoted(smarts)}); at most {LONGEST_SMILES:,} are read"
        )

    # Of a blank pattern RDKit makes one that is nowhere.
    with quiet_rdkit():
        pattern = Chem.MolFromSmarts(smarts) if smarts.strip() else None
    if pattern is None or not pattern.GetNumAtoms():
        raise InputError(
            f"{smarts!r} is not a SMARTS that RDKit can read: check its brackets, ring digits and symbols; a SMILES "
            "such as c1ccncc1 is a SMARTS, too"
        )


def cost(feature: str) -> float:
    """Milliseconds that a feature of a molecule takes, roughly: what is cheap is asked first."""
    if feature.startswith(SMARTS):
        return _SMARTS_COST
    if feature.startswith(ALERTS):
        return _ALERT_COSTS.get(feature.removeprefix(ALERTS), _ALERT_COST)
    known = PROPERTIES.get(feature.removeprefix(PROPERTY))
    return _OTHER_COST if known is None else known.cost


def measure(
    strings: Sequence[str], features: Sequence[str], conditions: Sequence[Mapping[str, Any]] = ()
) -> list[list[float]]:
    """Features of molecules, for each only up to the first condition that it fails.

    Args:
        strings: SMILES.
        features: Their names: ``"property MW"``, ``"smarts c1ccccc1"``, ``"alerts PAINS"``. The latter two are 1 where
            there is such a substructure and 0 elsewhere.
        conditions: Bounds of each feature, for `within`. By default all features are computed.

    Returns:
        For each string the values of the first few features; NaN for what cannot be computed.

    Example:
        >>> measure(["CCO"], ["property heavy_atoms", "smarts [OH]"])
        [[3.0, 1.0]]
        >>> measure(["CCO"], ["property heavy_atoms", "smarts [OH]"], [{"low": 5}, {}])
        [[3.0]]
    """
    computes = [_compute(feature) for feature in features]
    bounds = [dict(condition) for condition in conditions] or [{} for _ in features]
    found = []
    with quiet_rdkit():
        for string in strings:
            mol = parse_smiles(string.strip())
            values: list[float] = []
            computed: dict[str, float] = {}
            for feature, compute, bound in zip(features, computes, bounds, strict=True):
                if feature not in computed:
                    computed[feature] = math.nan if mol is None else float(compute(mol))
                values.append(computed[feature])
                if not within(values[-1], **bound):
                    break
            found.append(values)
    return found


def within(
    value: float,
    low: float | None = None,
    high: float | None = None,
    low_open: bool = False,
    high_open: bool = False,
) -> bool:
    """Whether a number lies within bounds that may be missing; NaN lies within none.

    Example:
        >>> within(2, 1, 2), within(2, 1, 2, high_open=True), within(float("nan"))
        (True, False, False)
    """
    if math.isnan(value):
        return False
    if low is not None and (value < low or (low_open and value == low)):
        return False
    return high is None or value < high or (value == high and not high_open)


def first_alert(smiles: str, catalog: str) -> str | None:
    """What a catalogue calls the first alert in a molecule; `None` if there is none."""
    with quiet_rdkit():
        mol = parse_smiles(smiles)
        match = None if mol is None else _catalog(catalog).GetFirstMatch(mol)
    return None if match is None else str(match.GetDescription())


@cache
def _compute(feature: str) -> Compute:
    if feature.startswith(SMARTS):
        from rdkit import Chem

        pattern = Chem.MolFromSmarts(feature.removeprefix(SMARTS))
        return lambda mol: float(mol.HasSubstructMatch(pattern))
    if feature.startswith(ALERTS):
        catalog = _catalog(feature.removeprefix(ALERTS))
        return lambda mol: float(catalog.HasMatch(mol))
    name = feature.removeprefix(PROPERTY)
    if name == "charge":
        from rdkit import Chem

        return Chem.GetFormalCharge
    if name == "SA":
        return _synthetic_accessibility
    known = PROPERTIES.get(name)
    return _descriptors()[name if known is None else known.descriptor]


def _synthetic_accessibility(mol: Any) -> float:
    from rdkit import Chem

    from seqopt.objectives.molecules import sa_score

    return float(sa_score([Chem.MolToSmiles(mol)])[0])


@cache
def _catalog(name: str) -> Any:
    from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

    parameters = FilterCatalogParams()
    parameters.AddCatalog(FilterCatalogParams.FilterCatalogs.names[name])
    return FilterCatalog(parameters)


@cache
def _descriptors() -> dict[str, Compute]:
    from rdkit.Chem import Descriptors

    # RDKit's stubs do not list the descriptors that are made when the module is imported.
    found: Any = Descriptors
    return dict(found.descList)


def _plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())
