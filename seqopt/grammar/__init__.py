"""Context-free grammars: loading, checking, sampling and parsing."""

from seqopt.grammar.analysis import GrammarReport, GrammarWarning, check_grammar
from seqopt.grammar.loading import load_grammar, read_grammar
from seqopt.grammar.parsing import Parser
from seqopt.grammar.rules import ParseTree, Rules, Subtrees
from seqopt.grammar.sampling import DISCOUNT, Sampler
from seqopt.grammar.terminals import TerminalTokenizer

__all__ = [
    "DISCOUNT",
    "GrammarReport",
    "GrammarWarning",
    "ParseTree",
    "Parser",
    "Rules",
    "Sampler",
    "Subtrees",
    "TerminalTokenizer",
    "check_grammar",
    "load_grammar",
    "read_grammar",
]
