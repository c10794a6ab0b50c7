"""Spaces, surrogates and searches of reactions and building blocks pass the conformance suites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seqopt.models import ReagentGP
from seqopt.search import ReagentSearch
from seqopt.spaces import CombinatorialSpace
from seqopt.strategies import ModelBased
from seqopt.testing.spaces import EvolvableSpaceConformance
from seqopt.testing.strategies import StrategyConformance
from seqopt.testing.surrogates import (
    JointSurrogateConformance,
    NoiseAwareSurrogateConformance,
    StringSurrogateConformance,
)

AMIDE = "[C:1](=[O:2])[OH].[N;H1,H2;!$(NC=O):3]>>[C:1](=[O:2])[N:3]"
AMINATION = "[C;H1:1]=O.[N;H1,H2;!$(NC=O):2]>>[C:1][N:2]"
UGI = "[C;H1:1]=O.[N;H2:2].[C:3](=[O:4])[OH]>>[C:1](C#N)[N:2][C:3]=[O:4]"
ACIDS = ["CC(=O)O", "OC(=O)c1ccccc1", "OC(=O)c1ccncc1", "OC(=O)C1CC1"]
AMINES = ["CN", "CCN", "NC1CCCCC1", "C1CNCCO1", "C[C@H](N)c1ccccc1"]
ALDEHYDES = ["CC=O", "O=Cc1ccccc1"]


def _few(string: str) -> bool:
    return len(string) < 20


def amides(accept: Callable[[str], bool] | None = None) -> CombinatorialSpace:
    return CombinatorialSpace([AMIDE], {"acids": ACIDS, "amines": AMINES}, accept)


def three() -> CombinatorialSpace:
    return CombinatorialSpace([AMIDE, AMINATION, UGI], {"acids": ACIDS, "amines": AMINES, "aldehydes": ALDEHYDES})


SPACES: dict[str, Callable[[], CombinatorialSpace]] = {
    "two components": amides,
    "several reactions": three,
    "accepted": lambda: amides(_few),
}


@pytest.mark.parametrize("name", SPACES)
class TestSpaces(EvolvableSpaceConformance):
    @pytest.fixture
    def space(self, name: str) -> Any:
        return SPACES[name]()

    @pytest.fixture
    def other_space(self, name: str) -> Any:
        return CombinatorialSpace([AMIDE], {"acids": ACIDS[:2], "amines": AMINES})

    @pytest.fixture
    def bad_strings(self, name: str) -> list[str]:
        return ["C1CC"]

    @pytest.fixture
    def writings(self, name: str) -> list[tuple[str, str]]:
        return [("CNC(C)=O", "C(=O)(C)NC")]


class TestSurrogate(JointSurrogateConformance, NoiseAwareSurrogateConformance, StringSurrogateConformance):
    @pytest.fixture
    def make_surrogate(self) -> Callable[[], Any]:
        def make() -> ReagentGP:
            surrogate = ReagentGP()
            surrogate.bind(amides())
            return surrogate

        return make

    @pytest.fixture
    def strings(self) -> list[str]:
        return sorted(amides().to_strings([(0, acid, amine) for acid in range(4) for amine in range(4, 9)]))


class TestStrategy(StrategyConformance):
    @pytest.fixture
    def make_strategy(self) -> Callable[[], Any]:
        return lambda: ModelBased(ReagentGP(), "thompson", ReagentSearch(draws=4, shortlist=12))

    @pytest.fixture
    def space(self) -> Any:
        return CombinatorialSpace([AMIDE], {"acids": [*ACIDS, "CCC(=O)O", "CCCC(=O)O", "OC(=O)CF"], "amines": AMINES})
