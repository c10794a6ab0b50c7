"""Who shows what: the nearest base that is known, loaded only when something is looked at."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from seqopt.utils import shown
from seqopt.utils.shown import Shown, Tabulated, add_loader, register_renderer, rendering


@dataclass
class Said:
    text: str

    def as_html(self) -> str:
        return f"<b>{self.text}</b>"

    def as_text(self) -> str:
        return self.text


class Base(Shown):
    pass


class Child(Base):
    pass


class Other(Tabulated):
    pass


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "_renderers", {})
    monkeypatch.setattr(shown, "_loaders", [])


def test_what_nobody_knows_is_shown_by_its_repr() -> None:
    assert rendering(Other()) is None
    one = Other()
    assert str(one) == repr(one) == object.__repr__(one)
    assert Base()._repr_html_().startswith("<pre>&lt;")


def test_the_nearest_base_that_is_registered_counts() -> None:
    register_renderer(Base, lambda one: Said("base"))
    assert str(Child()) == "base"
    register_renderer(Child, lambda one: Said(f"child {type(one).__name__}"))
    assert str(Child()) == "child Child"
    assert Child()._repr_html_() == "<b>child Child</b>"
    assert str(Base()) == "base"
    register_renderer(object, lambda one: Said("anything"))
    assert repr(Other()) == "anything"
    assert str(Child()) == "child Child"


def test_loaders_are_called_once_in_order_and_only_when_they_are_needed() -> None:
    called = []

    def first() -> None:
        called.append("first")
        register_renderer(Base, lambda one: Said("base"))
        add_loader(lambda: called.append("third"))

    add_loader(first)
    add_loader(lambda: called.append("second"))
    assert called == []
    assert str(Child()) == "base"
    assert called == ["first"]
    register_renderer(object, lambda one: Said("anything"))
    assert [str(Other()), str(Other()), str(Base())] == ["anything", "anything", "base"]
    assert called == ["first", "second", "third"]
