"""Products of reactions and building blocks: libraries that nobody can list."""

from seqopt.spaces.combinatorial.blocks import Block, BuildingBlocks, read_blocks
from seqopt.spaces.combinatorial.reactions import Reaction, read_reactions
from seqopt.spaces.combinatorial.space import CombinatorialSpace, Route

__all__ = [
    "Block",
    "BuildingBlocks",
    "CombinatorialSpace",
    "Reaction",
    "Route",
    "read_blocks",
    "read_reactions",
]
