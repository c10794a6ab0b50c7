"""Filters: what they ask for, and what they leave of a space."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

import seqopt
from seqopt.datasets import read_pool
from seqopt.errors import InputError
from seqopt.filters import filtering
from seqopt.filters.conditions import (
    Alerts,
    ColumnCondition,
    Filter,
    Pattern,
    PropertyRange,
    Substructure,
    checked,
    from_json,
    passing,
    to_json,
)
from seqopt.filters.filtering import acceptor, filter_pool, narrow, try_filters
from seqopt.filters.properties import PROPERTIES, measure, within
from seqopt.spaces import CodonSpace, GrammarSpace, Space, StringSpace

SMILES = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "C(=O)O", "F", "Cl")]
MOLECULES = [*SMILES, "Oc1ccccc1O", "O=C1C=CC(=O)C=C1", "c1ccncc1CC", "CC(=O)Nc1ccc(O)cc1", "[NH3+]CCO", "N#CC=CC#N"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SEQOPT_CACHE", str(folder))
    return folder


def mols() -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(string) for string in MOLECULES]


# What filters ask for


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("MW 200..500", ("MW", 200, 500, False, False)),
        ("molecular weight 200 .. 500.5", ("MW", 200, 500.5, False, False)),
        ("logP -1..", ("logP", -1, None, False, False)),
        ("tpsa ..140", ("TPSA", None, 140, False, False)),
        ("h-bond donors <= 5", ("HBD", None, 5, False, False)),
        ("HBA<5", ("HBA", None, 5, False, True)),
        ("SA > 1e0", ("SA", 1, None, True, False)),
        ("QED >= .5", ("QED", 0.5, None, False, False)),
        ("charge 0", ("charge", 0, 0, False, False)),
        ("charge == -1", ("charge", -1, -1, False, False)),
        ("bertzct 1..2", ("BertzCT", 1, 2, False, False)),
    ],
)
def test_ranges_are_read(text: str, bounds: tuple[object, ...]) -> None:
    found = PropertyRange.parse(text).checked()
    assert (found.name, found.low, found.high, found.low_open, found.high_open) == bounds
    # What a range says of itself can be read again.
    if " to " not in found.describe() and " and " not in found.describe():
        assert PropertyRange.parse(found.describe()).checked() == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MW", "is not a range"),
        ("MW 200-500", "is not a range"),
        ("200..500", "is not a range"),
        ("MW != 3", "is not a range"),
        ("MW ..", "no bounds"),
        ("MW 500..200", r"reversed: 500 is above 200; write 'MW 200\.\.500'"),
        ("QED 0,5..1", "'0,5' is not a number: write 6.5, not 6,5"),
        ("MV 1..2", r"no property 'MV': choose MW, logP"),
        ("rotatable_bond 1..2", "Did you mean rotatable_bonds"),
        ("molwt9 1..2", "Did you mean MW|Did you mean MolWt"),
    ],
)
def test_what_is_no_range_is_explained(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PropertyRange.parse(text).checked()


def test_an_open_interval_without_width_is_empty() -> None:
    with pytest.raises(InputError, match="is empty"):
        PropertyRange("MW", 3, 3, low_open=True).checked()


@pytest.mark.parametrize(
    ("text", "column", "operator", "value"),
    [
        ("price <= 100", "price", "<=", "100"),
        ("price(EUR)<1e2", "price(EUR)", "<", "1e2"),
        ("supplier = ACME Ltd", "supplier", "==", "ACME Ltd"),
        ("in stock != 'no'", "in stock", "!=", "no"),
        ("\"a<b\" >= '-5'", "a<b", ">=", "-5"),
        ('note == ""', "note", "==", ""),
    ],
)
def test_conditions_are_read(text: str, column: str, operator: str, value: str) -> None:
    assert ColumnCondition.parse(text).checked() == ColumnCondition(column, operator, value)


@pytest.mark.parametrize(
    "text", ["price", "<= 3", "price <=", "price => 3", "price === 3", "price <= cheap", "p < 6,5"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        ColumnCondition.parse(text).checked()


def test_cells_are_compared_as_numbers_or_as_text() -> None:
    cells = ["5", " 10 ", "", "1e1", "ten", "-3"]

    def mask(text: str, column: list[str] = cells) -> str:
        return "".join("x" if found else "." for found in ColumnCondition.parse(text).mask(column))

    assert mask("c <= 10") == "xx.x.x"
    assert mask("c < 10") == "x....x"
    assert mask("c >= 10") == ".x.x.."
    assert mask("c > -3") == "xx.x.."
    # A column that holds text is compared as text, where 1e1 is not 10.
    assert mask("c == 10") == ".x...."
    numbers = ["10", "1e1", "", "9"]
    assert mask("c == 10.0", numbers) == "xx.."
    assert mask("c != 10.0", numbers) == "...x"  # an empty cell fails a comparison of numbers
    assert mask("c != ten") == "xxxx.x"
    assert mask("c == ''") == "..x..."
    assert mask("c == ACME", [" acme", "Acme Ltd"]) == "x."
    assert ColumnCondition.parse("c <= 10").unread(cells) == ["ten"]


@pytest.mark.parametrize(
    ("text", "column", "operator", "values"),
    [
        ("supplier in (ACME, Enamine Ltd)", "supplier", "in", ["ACME", "Enamine Ltd"]),
        ("supplier NOT  IN('Fisher, Inc.',O'Neil)", "supplier", "not in", ["Fisher, Inc.", "O'Neil"]),
        ('"in stock" in ( yes , "" )', "in stock", "in", ["yes", ""]),
        ("'a (in mg)' in (5)", "a (in mg)", "in", ["5"]),
        ('c in ("x (y)", "a=b", c<d)', "c", "in", ["x (y)", "a=b", "c<d"]),
        ("price not in (1, 2.50)", "price", "not in", ["1", "2.50"]),
    ],
)
def test_conditions_with_several_values_are_read(text: str, column: str, operator: str, values: list[str]) -> None:
    found = ColumnCondition.parse(text).checked()
    assert found == ColumnCondition(column, operator, values)
    # What is shown, and what is kept, is the same condition.
    described = found.describe().removeprefix(column)
    assert ColumnCondition.parse(f'"{column}"{described}') == found
    assert from_json(json.loads(json.dumps(to_json([found])))) == [found]
    assert json.loads(json.dumps(to_json([found]))) == to_json([found])
    assert checked([found, *to_json([found])]) == [found]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("supplier in ACME, Enamine", "write the values in brackets"),
        ("supplier in ()", "compares with nothing"),
        ("supplier in (ACME,)", "empty value"),
        ("supplier in (, ACME)", "empty value"),
        ("supplier in (ACME,, Enamine)", "empty value"),
        ("supplier in ('ACME, Enamine)", "put quotation marks around"),
        ("supplier in ('ACME' Enamine)", "put quotation marks around"),
        ("supplier in (ACME (UK), Enamine)", "put quotation marks around"),
        ("supplier in (ACME", "write the values in brackets"),
        ("supplier of (ACME)", "is not a condition on a column"),
    ],
)
def test_what_is_no_list_of_values_is_explained(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ColumnCondition.parse(text)


def test_a_list_goes_with_in_and_one_value_with_the_others() -> None:
    for wrong in (("in", "ACME"), ("not in", []), ("==", ["ACME"]), ("<", ["1", "2"])):
        with pytest.raises(InputError, match="compares with"):
            ColumnCondition("supplier", *wrong).checked()
    # A unit in the name of a column is no list.
    assert ColumnCondition.parse("amount in (mg) <= 5") == ColumnCondition("amount in (mg)", "<=", "5")


def test_cells_are_compared_with_each_of_several_values() -> None:
    def mask(text: str, column: list[str]) -> str:
        return "".join("x" if found else "." for found in ColumnCondition.parse(text).mask(column))

    names = ["acme ", "Fisher, Inc.", "", "Enamine"]
    assert mask("s in (ACME, 'fisher, inc.')", names) == "xx.."
    assert mask("s not in (ACME, 'fisher, inc.')", names) == "..xx"
    assert mask('s in (enamine, "")', names) == "..xx"
    numbers = ["10", "1e1", "", "9"]
    assert mask("c in (10.0, 8)", numbers) == "xx.."
    assert mask("c not in (10.0, 8)", numbers) == "...x"  # an empty cell fails a comparison of numbers
    assert mask("c in (10.0, ten)", [*numbers, "ten"]) == "....x"  # a comparison of text
    ColumnCondition.parse("c in (10, 9)").check_cells(numbers)
    with pytest.raises(InputError, match=r"c in \(10, ten\): column 'c' holds numbers .* 'ten' is not one"):
        ColumnCondition.parse("c in (10, ten)").check_cells(numbers)
    with pytest.raises(InputError, match=r"holds no numbers .* but 7 is one"):
        ColumnCondition.parse("s in (acme, 7)").check_cells(names)


def test_other_filters_are_checked() -> None:
    for wrong, message in (
        (Substructure("c1cc"), "not a SMARTS"),
        (Substructure(" "), "not a SMARTS"),
        (Alerts("pians"), "choose PAINS_A.*Did you mean PAINS"),
        (Pattern("("), "not a regular expression"),
        (Pattern(""), "empty"),
        ({"kind": "colour"}, "unknown kind of filter 'colour'"),
        ({"kind": "alerts", "name": "PAINS"}, "is not a filter"),
        ("MW 1..2", "is not a filter"),
    ):
        with pytest.raises(InputError, match=message):
            checked([wrong])  # type: ignore[list-item]
    assert checked([Alerts("pains"), Alerts("PAINS")]) == [Alerts("PAINS")]


ALL: list[Filter] = [
    PropertyRange("MW", 40, 120, high_open=True),
    PropertyRange("rotatable_bonds", high=4),
    Substructure("[OX2H]"),
    Substructure("Cl", required=False),
    Alerts("BRENK"),
    ColumnCondition("price", "<=", "30"),
    Pattern("^C"),
]


def test_filters_are_kept_as_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(ALL)))) == ALL
    assert len({item.describe() for item in ALL}) == len(ALL)


# What they leave


def test_properties_are_those_of_rdkit() -> None:
    names = [name for name in PROPERTIES if name not in ("charge", "SA")]
    values = measure(MOLECULES, [f"property {name}" for name in names])
    expected = [[getattr(Descriptors, PROPERTIES[name].descriptor)(mol) for name in names] for mol in mols()]
    np.testing.assert_allclose(values, expected)
    assert measure(["C[N+](C)(C)C", "CC(=O)[O-]"], ["property charge"]) == [[1.0], [-1.0]]
    assert 1 <= measure(["CCO"], ["property SA"])[0][0] < 3


def test_every_combination_leaves_what_rdkit_says() -> None:
    catalog_parameters = FilterCatalogParams()
    catalog_parameters.AddCatalog(FilterCatalogParams.FilterCatalogs.BRENK)
    brenk = FilterCatalog(catalog_parameters)
    hydroxyl, chlorine = Chem.MolFromSmarts("[OX2H]"), Chem.MolFromSmarts("Cl")
    # The stubs of RDKit do not know its descriptors.
    weight, rotatable = Descriptors.MolWt, Descriptors.NumRotatableBonds  # type: ignore[attr-defined]
    prices = [str(number) for number in range(len(MOLECULES))]
    single = np.array(
        [
            [
                40 <= weight(mol) < 120,
                rotatable(mol) <= 4,
                mol.HasSubstructMatch(hydroxyl),
                not mol.HasSubstructMatch(chlorine),
                not brenk.HasMatch(mol),
                number <= 30,
                MOLECULES[number].startswith("C"),
            ]
            for number, mol in enumerate(mols())
        ]
    )
    assert single.any(axis=0).all()
    assert not single.all(axis=0).any()
    for subset in range(1, 2 ** len(ALL)):
        chosen = [index for index in range(len(ALL)) if subset >> index & 1]
        mask, report = filter_pool(
            MOLECULES, MOLECULES, "molecule", [ALL[index] for index in chosen], {"Price": prices}
        )
        assert (mask == single[:, chosen].all(axis=1)).all()
        assert report.allowed == mask.sum()
        # Each filter is tried on what those before it leave.
        counts = [report.candidates, *(step.passed for step in report.steps)]
        assert [step.reached for step in report.steps] == counts[:-1]


def test_bounds_hold_for_one_value_as_for_many() -> None:
    values = np.array([-1.0, 0.0, 0.5, 1.0, np.nan, np.inf])
    for low in (None, 0.0):
        for high in (None, 1.0):
            for low_open in (False, True):
                for high_open in (False, True):
                    item = PropertyRange("MW", low, high, low_open, high_open)
                    assert passing(item, values).tolist() == [within(value, **item.bounds) for value in values]


def test_features_are_computed_once_and_counts_do_not_depend_on_what_is_cached(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    calls: list[int] = []

    def counted(function: str, strings: list[str], **options: object) -> list[object]:
        calls.append(len(strings))
        return measure(strings, **options["arguments"])  # type: ignore[arg-type, return-value]

    size = len(MOLECULES)
    monkeypatch.setattr(filtering, "map_strings", counted)
    monkeypatch.setattr(filtering, "CACHE_FROM", size)
    strings = MOLECULES
    filters: list[Filter] = [PropertyRange("MW", 40, 120), PropertyRange("QED", 0.4), Substructure("O")]

    def run(*chosen: Filter) -> object:
        return filter_pool(strings, strings, "molecule", chosen)[1]

    # QED of all first, so that the cache holds more than the filters together would ask for.
    run(filters[1])
    partly = run(*filters)
    assert run(*filters) == partly
    assert calls == [size, size]
    # Other bounds need molecules only that went no further before.
    run(PropertyRange("MW", 60, 100), PropertyRange("QED", 0.5), Substructure("O", required=False))
    assert len(calls) == 2
    for path in cache.iterdir():
        path.write_text("damaged")
    assert run(*filters) == partly
    assert calls[2:] == [size]
    strings = strings[1:]  # another library, and too small to be kept
    run(filters[0])
    run(filters[0])
    assert calls[3:] == [size - 1] * 2


def test_what_a_molecule_does_not_reach_is_not_computed() -> None:
    found = measure(["CCO", "CCCCCCO"], ["property heavy_atoms", "alerts PAINS"], [{"high": 4}, {"high": 0}])
    assert found == [[3.0, 0.0], [7.0]]


SPACES: list[tuple[Space, list[Filter]]] = [
    (StringSpace("01", 8), [Pattern("11"), Pattern("000", required=False)]),
    (CodonSpace("MAGIC"), [Pattern("GGT", required=False)]),
    (GrammarSpace("arithmetic", 2, 9), [Pattern("sin"), Pattern("exp", required=False)]),
    (GrammarSpace("smiles", 3, 12, kind="molecule"), [PropertyRange("heavy_atoms", 3, 8), Substructure("[#7]")]),
]


@pytest.mark.parametrize(("space", "filters"), SPACES, ids=lambda item: type(item).__name__)
def test_a_narrowed_space_makes_up_only_what_passes(space: Space, filters: list[Filter]) -> None:
    rng = np.random.default_rng(0)
    narrowed = narrow(space, filters)
    accept = acceptor(filters, space.kind)
    strings = narrowed.sample(20, rng)
    individuals = [narrowed.from_string(string) for string in strings]  # type: ignore[attr-defined]
    children = [*narrowed.mutate(individuals, rng), *narrowed.cross(individuals[:10], individuals[10:], rng)[0]]  # type: ignore[attr-defined]
    strings += [narrowed.to_string(child) for child in children]  # type: ignore[attr-defined]
    assert all(accept(string) and space.contains(string) for string in strings)
    mask, _ = filter_pool(strings, [space.key(string) for string in strings], space.kind, filters)
    assert mask.all()
    # The space itself is as wide as before.
    assert not all(map(accept, space.sample(50, rng)))
    report = try_filters(space, filters, seed=1)
    assert report.sampled
    assert 0 < report.allowed < report.candidates


def test_a_narrowed_space_keeps_its_own_condition() -> None:
    space = StringSpace("01", 8, accept=lambda string: string.count("1") == 3)
    strings = narrow(space, [Pattern("^1")]).sample(50, np.random.default_rng(0))
    assert len(strings) == 21  # the other two ones are in two of seven places
    assert all(string[0] == "1" and string.count("1") == 3 for string in strings)


@pytest.mark.parametrize("notation", ["smiles", "inchi"])
def test_a_search_reads_its_filters_as_its_pool(tmp_path: Path, notation: str) -> None:
    strings = ["CCO", "CCCO", "CCCCO", "CCCCCO"]
    if notation == "inchi":
        strings = [Chem.MolToInchi(Chem.MolFromSmiles(one)) for one in strings]
    rows = [f"{string};{price};{value}" for string, price, value in zip(strings, PRICES, VALUES, strict=True)]
    path = tmp_path / "pool.csv"
    path.write_text("\n".join(["structure;price;score", *rows]), encoding="utf-8")
    pool = read_pool(path, values_column="score", decimal_comma=True)
    result = seqopt.maximize("column:score", pool, initial=2, budget=0, filters=[ColumnCondition("price", "<=", "2.0")])
    assert sorted(result.evaluations["value"]) == [0.5, 1.5]


PRICES, VALUES = ("1,5", "2,0", "2,5", "30,1"), ("0,5", "1,5", "2,5", "3,5")
