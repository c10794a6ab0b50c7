"""How objects show themselves: what is said is true, what a user wrote stays text, nothing is too long or raises."""

from __future__ import annotations

import base64
import copy
import math
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import seqopt
from seqopt.campaign import Campaign, Settings, Suggestion, Suggestions
from seqopt.errors import InputError
from seqopt.optimizer import Batch
from seqopt.report.display import LARGEST_BATCH, LONGEST_STRING, SHOWN, as_html, as_text, describe
from seqopt.report.formats import printable
from seqopt.report.kernel_pca import kernel_pca
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, LocalSpace, StringSpace
from seqopt.utils.shown import Shown, Tabulated

MOLECULES = ["CCO", "CCN", "CCCO", "CCCN", "c1ccccc1O", "c1ccccc1N", "CC(C)O", "CC(C)N", "CCS", "CCCl", "CCBr", "CCF"]
EVIL = "<img src=x onerror=alert(1)>\"'&\x00\u202e"


class Page(HTMLParser):
    """Tags and text of a page; fails on tags that are not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "img":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def pictures(self) -> list[str]:
        return [str(attributes["src"]) for tag, attributes in self.tags if tag == "img"]


def told(optimizer: seqopt.Optimizer, strings: list[str]) -> None:
    optimizer.tell(strings, [float(len(string)) for string in strings])


@pytest.fixture
def optimizer() -> seqopt.Optimizer:
    return seqopt.Optimizer(CandidateSet(MOLECULES, kind="molecule"), initial=4, batch_size=3, seed=1)


def test_a_batch_is_a_list_of_strings(optimizer: seqopt.Optimizer) -> None:
    batch = optimizer.ask()
    assert isinstance(batch, list)
    assert batch == [row.string for row in optimizer.observations.rows]
    assert repr(batch) == repr(list(batch))
    assert type(batch[:2]) is list
    assert type(batch.__add__(["C"])) is list
    for again in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert isinstance(again, Batch)
        assert again == batch
        assert again.kind == "molecule"


def test_a_batch_shows_predictions_and_later_its_results(optimizer: seqopt.Optimizer) -> None:
    assert "Initial design" in Page(optimizer.ask()._repr_html_()).text
    told(optimizer, optimizer.pending)
    batch = optimizer.ask()
    table = batch.to_pandas()
    assert list(table["string"]) == list(batch)
    assert list(table["status"]) == ["pending"] * 3
    page = Page(batch._repr_html_())
    assert "Batch 1" in page.text
    assert page.text.count("(90 %: ") == 3
    optimizer.tell(batch[:1], [123.5])
    assert "123.5" in Page(batch._repr_html_()).text
    assert batch.to_pandas().loc[0, "value"] == 123.5


def test_batches_and_spaces_print_as_tables(optimizer: seqopt.Optimizer) -> None:
    told(optimizer, optimizer.ask())
    batch = optimizer.ask()
    title, head, *rows = str(batch).splitlines()
    assert title == "Batch 1: 3 strings to evaluate"
    assert head.split() == ["predicted", "string"]
    assert [row.split()[-1] for row in rows] == list(batch)
    for space in (StringSpace("AB", 5), CodonSpace("MK"), GrammarSpace("arithmetic", 3, 9), LocalSpace(["AB", "CD"])):
        lines = str(space).splitlines()
        assert lines[0] == repr(space)
        assert [line.split()[0] for line in lines[1:]].count("size") == hasattr(space, "size")
        random = lines[-1].split()
        assert random[1:] == ["random", "ones", "are", "shown"]
        assert all(space.contains(line.strip()) for line in lines[-1 - int(random[0]) : -1])
    assert str(optimizer.space).splitlines()[0] == "Candidate set of 12 molecules"
    assert "\n" not in repr([optimizer.space, batch])


class Printer:
    """What IPython's printer gives to an object: where it is among those being printed, and where its text goes."""

    def __init__(self, depth: int) -> None:
        self.stack = list(range(depth))
        self.text_of = ""

    def text(self, written: str) -> None:
        self.text_of += written


def test_ipython_shows_the_table_of_a_value_and_the_line_of_an_element(optimizer: seqopt.Optimizer) -> None:
    for shown in (optimizer.space, optimizer.ask(), StringSpace("AB", 5)):
        # Of a class and its bases IPython takes the first that has this method or a ``__repr__``.
        assert "_repr_pretty_" in vars(type(shown))
        for depth, expected in ((1, str(shown)), (2, repr(shown))):
            printer = Printer(depth)
            shown._repr_pretty_(printer, False)
            assert printer.text_of == expected


def test_ipython_itself(optimizer: seqopt.Optimizer) -> None:
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    for shown in (optimizer.space, optimizer.ask(), StringSpace("AB", 5)):
        assert pretty(shown) == str(shown)
        assert pretty([shown]) == f"[{shown!r}]"


def test_a_class_of_ones_own_is_shown_by_its_repr() -> None:
    class Rings(Shown):
        def __repr__(self) -> str:
            return f"Rings of <{EVIL}>"

    class Plain(Tabulated):
        pass

    assert str(Rings()) == f"Rings of <{printable(EVIL)}>"
    assert Page(Rings()._repr_html_()).text.strip() == str(Rings())
    assert "Plain object at" in repr(Plain())


def test_molecules_are_drawn_as_images_of_their_own(optimizer: seqopt.Optimizer) -> None:
    page = Page(optimizer.ask()._repr_html_())
    assert len(page.pictures) == 4
    for picture in page.pictures:
        media_type, _, encoded = picture.partition(";base64,")
        assert media_type == "data:image/svg+xml"
        root = ElementTree.fromstring(base64.b64decode(encoded))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.findall(".//{http://www.w3.org/2000/svg}path")
        assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_a_molecule_that_cannot_be_drawn_is_named() -> None:
    suggestions = Suggestions([Suggestion("C1CC", "C1CC", name="B01-01")], Settings("y", pool={"kind": "molecule"}))
    page = Page(as_html(suggestions))
    assert page.pictures == []
    assert "cannot be drawn" in page.text
    assert "C1CC" in page.text


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_result_lists_the_best_in_order(direction: str) -> None:
    search = seqopt.maximize if direction == "maximize" else seqopt.minimize
    pool = ["A" * count for count in range(1, 15)]

    def fragile(strings: list[str]) -> list[float]:
        if len(strings[0]) == 7:
            raise RuntimeError("broken")
        return [float(len(string)) for string in strings]

    result = search(fragile, pool, initial=14, budget=0)
    sheet = describe(result)
    values = [float(entry.cells[0]) for entry in sheet.entries]
    assert values == sorted(values, reverse=direction == "maximize")
    assert len(values) == SHOWN
    assert values[0] == result.best_value
    assert [entry.string for entry in sheet.entries] == ["A" * int(value) for value in values]
    assert "14 evaluations (1 failed)" in sheet.title
    assert "10 best of 13" in repr(result) == str(result)
    assert result.to_pandas().equals(result.evaluations)
    assert result.to_pandas() is not result.evaluations


def test_what_a_user_wrote_stays_text(tmp_path: Path) -> None:
    space = LocalSpace([[*"<img"], [*"/>"], [*"ab"]])
    campaign = Campaign.create(tmp_path / "a.seqopt", space, objective=EVIL, unit=EVIL, batch_size=4)
    batch = campaign.suggest()
    evil = Suggestions(
        [Suggestion(EVIL, EVIL, name=EVIL, reason={"kind": EVIL, "nearest": EVIL, "similarity": 0.5})],
        Settings(EVIL, unit=EVIL, pool={"kind": "molecule"}),
    )
    plain = Suggestions(list(evil), Settings(EVIL, unit=EVIL))
    result = seqopt.maximize(lambda strings: [1.0] * len(strings), [EVIL, "a", "b"], initial=3, budget=0)
    for shown in (space, campaign, batch, evil, plain, campaign.status(), result, result.optimizer):
        page = Page(as_html(shown))
        assert {tag for tag, _ in page.tags} <= {"div", "table", "tr", "td", "b"}
        assert not [name for _, attributes in page.tags for name in attributes if name != "style"]
        assert "\x00" not in as_html(shown) + as_text(shown)
        assert "\u202e" not in as_html(shown) + as_text(shown)
    assert "<img src=x onerror=alert(1)>" in Page(as_html(plain)).text
    campaign.close()


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (CandidateSet(MOLECULES, kind="molecule"), ("12 molecules", "10 of 12")),
        (StringSpace("01", 20), ("1,048,576 strings", "01")),
        (CodonSpace("TIKENIFGVS", forbidden=["GAATTC"], gc=(0.3, 0.5)), ("TIKENIFGVS", "GAATTC", "0.3, 0.5")),
        (GrammarSpace("arithmetic", 1, 9), ("arithmetic", "9")),
        (StringSpace("01", 20, accept=lambda string: False), ("lambda",)),
    ],
)
def test_spaces_say_what_they_are(space: Shown, words: tuple[str, ...]) -> None:
    page = Page(space._repr_html_())
    assert [word for word in words if word not in page.text] == []
    assert "\n" not in repr(space)


def test_strings_of_a_space_are_shown_unless_a_predicate_narrows_it() -> None:
    asked: list[str] = []
    narrowed = StringSpace("01", 20, accept=lambda string: bool(asked.append(string)) or True)
    assert describe(narrowed).entries == ()
    assert asked == []
    space = StringSpace("01", 20)
    assert all(space.contains(entry.string) for entry in describe(space).entries)
    assert describe(space).entries == describe(space).entries


def test_a_space_of_ones_own_inherits_how_it_is_shown() -> None:
    class Half(StringSpace):
        pass

    class Alone(Shown):
        pass

    assert describe(Half("01", 4)).entries
    assert "Alone object" in Page(Alone()._repr_html_()).text


def test_a_campaign_says_how_it_stands(tmp_path: Path) -> None:
    campaign = Campaign.create(tmp_path / "a.seqopt", StringSpace("01", 8), objective="pIC50", unit="M", batch_size=4)
    assert "0 values" in repr(campaign)
    batch = campaign.suggest()
    assert batch == campaign.suggest()
    assert isinstance(batch, list)
    for suggestion in batch:
        campaign.record(suggestion.name, suggestion.string.count("1"))
    best = campaign.status().best
    assert best is not None
    campaign.record(best.string, best.mean() + 1, replicate=True)
    text = repr(campaign.status())
    assert "5 values of 4 strings" in text
    assert f"(mean of 2): {best.string}" in text
    second = campaign.suggest()
    table = second.to_pandas()
    assert list(table["name"]) == [row.name for row in second]
    assert np.allclose(table["predicted_low"], [row.low for row in second])
    assert "B02-01" in repr(second)
    campaign.close()
    assert "closed" in repr(campaign)
    assert "closed" in Page(campaign._repr_html_()).text


def test_a_map_is_drawn(optimizer: seqopt.Optimizer) -> None:
    found = kernel_pca(MOLECULES, "minmax", values=[float(len(one)) for one in MOLECULES])
    page = Page(found._repr_html_())
    (picture,) = page.pictures
    assert base64.b64decode(picture.partition(",")[2]).startswith(b"\x89PNG")
    assert "12 of 12" in page.text
    assert Page(kernel_pca(MOLECULES, "minmax", components=1)._repr_html_()).pictures == []
    assert repr(found).count("\n") < 12


def test_nothing_is_too_long() -> None:
    long = "ACGT" * 5000
    pool = CandidateSet([long + base for base in "ACGT"] + ["A" * count for count in range(1, 200)], kind="dna")
    optimizer = seqopt.Optimizer(pool, initial=203)
    batch = optimizer.ask()
    for shown in (pool, batch, optimizer):
        html = as_html(shown)
        assert len(html) < 40_000
        assert max(map(len, re.findall(r"[ACGT]+", html))) <= LONGEST_STRING
    assert len(describe(batch).entries) == LARGEST_BATCH
    assert max(map(len, as_text(optimizer).splitlines())) < LONGEST_STRING
    optimizer.tell(batch, [float(len(one)) for one in batch])
    assert len(repr(optimizer)) < 3000


def test_an_empty_optimizer_and_empty_batches_show_themselves(optimizer: seqopt.Optimizer) -> None:
    assert "0 values, 0 failures" in repr(optimizer)
    assert "0 suggestions" in repr(Suggestions([], Settings("y")))
    assert "0 strings" in Page(Batch([], "text")._repr_html_()).text
    assert Suggestions([], Settings("y")).to_pandas().empty


def test_failures_and_missing_predictions_leave_no_nan(optimizer: seqopt.Optimizer) -> None:
    batch = optimizer.ask()
    optimizer.tell(batch, [math.nan, 1.0, 2.0, 3.0])
    page = Page(batch._repr_html_())
    assert "failed" in page.text
    assert "nan" not in page.text
    assert optimizer.to_pandas().equals(optimizer.observations.to_frame())


def test_a_space_that_cannot_be_sampled_is_shown_without_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    def barren(self: StringSpace, n: int, rng: np.random.Generator) -> list[str]:
        raise InputError("nothing")

    monkeypatch.setattr(StringSpace, "sample", barren)
    assert describe(StringSpace("01", 4)).entries == ()


def test_showing_needs_no_torch() -> None:
    code = "import sys, seqopt.utils.shown, seqopt.report.descriptions; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_variants_of_a_sequence_are_marked_where_they_differ() -> None:
    variants = ["MKVLAAGIL", "MKVLAAGIC", "MRVLAAGIL"]
    batch = Suggestions(
        [Suggestion(one, one, name="B01-01") for one in variants], Settings("y", pool={"kind": "protein"})
    )
    html = as_html(batch)
    marked = re.findall(r"<b [^>]*>(\w+)</b>", html)
    assert marked == ["C", "R"]
    assert [one for one in variants if one not in Page(html).text] == []
    assert "<b" not in as_html(Suggestions(list(batch), Settings("y")))


def test_strings_of_a_terminal_are_whole_and_stand_last() -> None:
    long = "C" * 150 + "O"
    lines = as_text(CandidateSet([long, "CCN"], kind="molecule")).splitlines()
    assert f"  {long}" in lines
    assert "  CCN" in lines  # nothing behind it, so that a line that the terminal breaks has no empty one below
