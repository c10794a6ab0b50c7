"""Products of tuples of building blocks, and the tuples of products.

A product is made by RDKit when it is asked for. The way back needs no list of products: molecules are cut where a
reaction may have joined their blocks (`seqopt.spaces.combinatorial.cutting`), blocks are found by the pieces that they
leave (`seqopt.spaces.combinatorial.survey`), and what is found is made again and compared.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.spaces.combinatorial.blocks import Block
from seqopt.spaces.combinatorial.cutting import OUTCOMES, Drawn, owners_of
from seqopt.spaces.combinatorial.reactions import Reaction
from seqopt.spaces.combinatorial.survey import NOWHERE, ONCE, SEVERAL, Leavings, leavings
from seqopt.strings.identity import canonical_smiles, parse_smiles, quiet_rdkit
from seqopt.utils.array_files import Array

REMEMBERED = 1 << 18
"""Products that are kept with their tuples; others are made again."""

TRIED = 4096
"""Most tuples that are made while that of a product is looked for."""

Individual = tuple[int, ...]
"""The number of a reaction, then those of the blocks of its components."""

Numbers = npt.NDArray[np.int64]


@dataclass
class Component:
    """One component of a reaction, and the blocks that can take its place.

    Attributes:
        numbers: Of the blocks, ascending.
        without: Blocks of its sets that do not match.
        several: Blocks that match at several places which are not equivalent: which product they give is not clear.
    """

    numbers: Numbers
    without: Numbers
    several: Numbers


class Products:
    """Makes products, and finds tuples.

    Args:
        reactions: They all parse.
        blocks: Numbered by their places.
        components: Of each reaction.
    """

    def __init__(
        self, reactions: Sequence[Reaction], blocks: Sequence[Block], components: Sequence[Sequence[Component]]
    ) -> None:
        self._reactions = reactions
        self._parsed = [reaction.parsed() for reaction in reactions]
        self._blocks = blocks
        self._components = components
        self._mols: OrderedDict[int, Any] = OrderedDict()
        self._keys: OrderedDict[Individual, str | None] = OrderedDict()
        self._tuples: OrderedDict[str, Individual] = OrderedDict()
        self._makers: OrderedDict[str, Individual] = OrderedDict()
        self._leavings: dict[int, list[Leavings]] = {}
        self.failed: dict[Individual, str] = {}

    def key(self, individual: Individual) -> str | None:
        """Canonical SMILES of a product; `None` if RDKit cannot make it."""
        if individual in self._keys:
            self._keys.move_to_end(individual)
            return self._keys[individual]
        with quiet_rdkit():
            key = self._made(individual)
        self._keys[individual] = key
        if key is not None:
            self._makers.setdefault(key, individual)
        for kept in (self._keys, self._makers):
            if len(kept) > REMEMBERED:
                kept.popitem(last=False)
        return key

    def makes(self, key: str) -> bool:
        """Whether some tuple has this product; what was made here is not cut again."""
        return key in self._makers or self.individual(key) is not None

    def individual(self, key: str) -> Individual | None:
        """The tuple whose product has this key; `None` if there is none.

        Of several it is the least, whichever were made before: a model sees the same tuples in every process.
        """
        known = self._tuples.get(key)
        if known is not None:
            return known
        with quiet_rdkit():
            mol = parse_smiles(key)
            if mol is None:
                return None
            tried = sorted(set(itertools.islice(self._candidates(mol), TRIED)))
            found = next((one for one in tried if self.key(one) == key), None)
        # What no cut brings back is known by the tuple that made it here.
        found = self._makers.get(key) if found is None else found
        if found is not None:
            self._tuples[key] = found
            if len(self._tuples) > REMEMBERED:
                self._tuples.popitem(last=False)
        return found

    def _mol(self, number: int) -> Any:
        mol = self._mols.get(number)
        if mol is None:
            mol = parse_smiles(self._blocks[number].key)
            self._mols[number] = mol
            if len(self._mols) > REMEMBERED:
                self._mols.popitem(last=False)
        return mol

    def _made(self, individual: Individual) -> str | None:
        """The product, made now."""
        from rdkit import Chem

        reaction, *numbers = individual
        outcomes = self._parsed[reaction].RunReactants(tuple(map(self._mol, numbers)), OUTCOMES)
        keys: set[str] = set()
        why = "the blocks do not react"
        for products in outcomes:
            try:
                Chem.SanitizeMol(products[0])
            except (ValueError, RuntimeError) as error:
                why = str(error).strip().splitlines()[0] if str(error).strip() else "RDKit cannot make it"
                continue
            key = canonical_smiles(Chem.MolToSmiles(products[0]))
            if key is None:
                why = "RDKit cannot read what it writes of it"
            elif "." not in key:
                keys.add(key)
            else:
                why = "it consists of several molecules"
        if not keys:
            self.failed.setdefault(individual, why)
            return None
        # Equivalent places give one product; of others that are left the first in order counts, always the same one.
        return min(keys)

    def _candidates(self, mol: Any) -> Iterator[Individual]:
        """Tuples that may have made a molecule."""
        drawn = Drawn(mol)
        for reaction, parsed in enumerate(self._parsed):
            seen = set()
            for owner in owners_of(parsed, mol):
                belongs = drawn.belonging(owner)
                options: list[list[int]] = []
                pieces: list[str] = []
                for slot, left in enumerate(self._leaving(reaction)):
                    pieces.append(drawn.piece(belongs, owner, slot))
                    found = left.of(pieces[-1])
                    if not found:
                        break
                    options.append(found)
                else:
                    if tuple(pieces) not in seen:
                        seen.add(tuple(pieces))
                        for numbers in itertools.product(*options):
                            yield (reaction, *numbers)

    def _leaving(self, reaction: int) -> list[Leavings]:
        """Blocks by what they leave of a product, for each component; found once."""
        known = self._leavings.get(reaction)
        if known is None:
            components = [one.numbers for one in self._components[reaction]]
            known = leavings(self._reactions[reaction], components, self._key_of_block)
            self._leavings[reaction] = known
        return known

    def _key_of_block(self, number: int) -> str:
        return self._blocks[number].key


def components_of(found: Array, sets: Sequence[Numbers]) -> list[Component]:
    """The blocks of each component of a reaction.

    Args:
        found: How all blocks match, components x blocks; see `seqopt.spaces.combinatorial.survey.places`.
        sets: Numbers of the blocks among which each component is chosen.
    """
    return [
        Component(*(numbers[row[numbers] == where] for where in (ONCE, NOWHERE, SEVERAL)))
        for numbers, row in zip(sets, found, strict=True)
    ]


def tuples_of(components: Sequence[Component]) -> int:
    """Number of tuples of one reaction."""
    return math.prod(len(one.numbers) for one in components)
