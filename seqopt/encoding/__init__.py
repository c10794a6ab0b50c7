"""From strings to padded small integers: tokenisers, alphabets and `EncodedStrings`.

A tokeniser splits a string into symbols, an `Alphabet` numbers the symbols from 1 (0 is padding, which matches
nothing), and an `Encoder` joins the two and returns `EncodedStrings`. Nothing outside this package handles symbols:
every public function of seqopt takes and returns plain ``str``.
"""

from seqopt.encoding.alphabet import Alphabet
from seqopt.encoding.codon_features import CodonFeatures
from seqopt.encoding.encoded import EncodedStrings, Encoder
from seqopt.encoding.features import (
    Encoded,
    FeatureEncoder,
    FeatureRows,
    Featurizer,
    JointEncoder,
    SelectiveFeaturizer,
    StringEncoder,
    TokensAndFeatures,
)
from seqopt.encoding.fields import ContextEncoder, FieldEncoder, Fields, HasContext
from seqopt.encoding.fingerprints import Fragprints, MorganFingerprint
from seqopt.encoding.templates import TemplatePositions
from seqopt.encoding.tokenizers import (
    CharacterTokenizer,
    SmilesTokenizer,
    Tokenizer,
    resolve_tokenizer,
)
from seqopt.encoding.varying import VaryingPositions, varying_positions

__all__ = [
    "Alphabet",
    "CharacterTokenizer",
    "CodonFeatures",
    "ContextEncoder",
    "Encoded",
    "EncodedStrings",
    "Encoder",
    "FeatureEncoder",
    "FeatureRows",
    "Featurizer",
    "FieldEncoder",
    "Fields",
    "Fragprints",
    "HasContext",
    "JointEncoder",
    "MorganFingerprint",
    "SelectiveFeaturizer",
    "SmilesTokenizer",
    "StringEncoder",
    "TemplatePositions",
    "Tokenizer",
    "TokensAndFeatures",
    "VaryingPositions",
    "resolve_tokenizer",
    "varying_positions",
]
