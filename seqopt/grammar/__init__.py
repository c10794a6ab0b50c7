"""Context-free grammars."""

from seqopt.grammar.loading import load_grammar

__all__ = ["load_grammar"]
