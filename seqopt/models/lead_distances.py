"""How far strings are from one string, a lead: what a prior mean may fall with.

Tanimoto distance is for molecules, the edit distance for sequences, the kernel distance for either. The first and the
last are bounded (by 1, and by the square root of 2 for kernels without negative values), the edit distance is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import gpytorch
import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import Encoder, FeatureEncoder, MorganFingerprint, StringEncoder
from seqopt.errors import InputError
from seqopt.kernels import MinMaxKernel, bind_symbols
from seqopt.kernels.engines.edit_distance import edit_distances
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.string_gp import default_kernel
from seqopt.strings.identity import explain_rejection, identity_keys, parse_smiles, quiet_rdkit, quoted
from seqopt.utils.config import Configurable

FloatArray = npt.NDArray[np.float64]

DistanceName = Literal["auto", "tanimoto", "edit", "kernel"]

SEQUENCES = ("protein", "dna", "rna")
"""Kinds whose strings have letters that are known, whatever their case."""


@runtime_checkable
class LeadDistance(Protocol):
    """Distances of strings from something that is fixed.

    Attributes:
        label: What it is, for people: ``"1 - Tanimoto similarity to CCO"``.
        largest: No distance is larger; infinity where they have no bound.
    """

    label: str
    largest: float

    def __call__(self, keys: Sequence[str]) -> FloatArray:
        """Distances, n, at least 0."""
        ...


class TanimotoDistance(Configurable):
    r"""1 - T(s, lead) with :math:`T(a, b) = \sum_i \min(a_i, b_i) / \sum_i \max(a_i, b_i)`, from 0 to 1.

    a and b are counts of the Morgan environments of radius 2, with stereochemistry, folded to 2,048 numbers
    (`seqopt.encoding.MorganFingerprint`), or bits whether there are any. Environments that share a number count
    together, so that molecules may come out nearer than by unfolded counts.

    Args:
        lead: A SMILES.
        counts: Whether environments are counted; the similarity is then also called MinMax.

    Raises:
        InputError: If the lead is not a molecule. When called: for a string that is none.

    Example:
        >>> TanimotoDistance("CCO")(["OCC", "CCN", "c1ccccc1"]).round(2).tolist()
        [0.0, 0.67, 1.0]
    """

    largest = 1.0

    def __init__(self, lead: str, counts: bool = True) -> None:
        with quiet_rdkit():
            readable = parse_smiles(lead) is not None
        if not readable:
            why = explain_rejection(lead, "molecule")
            raise InputError(f"the lead {quoted(lead)} cannot be read as a molecule ({why}): give its SMILES")
        self.lead, self.counts = lead, counts
        self.label = f"1 - Tanimoto similarity to {lead}"
        self._encoder = FeatureEncoder(MorganFingerprint(counts=counts))
        self._kernel = MinMaxKernel(threads=1)
        self._encoded = self._encoder.encode([lead])

    def __call__(self, keys: Sequence[str]) -> FloatArray:
        """See `LeadDistance`."""
        similarity = self._kernel.cross(self._encoder.encode(keys), self._encoded)[:, 0]
        found: FloatArray = np.clip(1.0 - similarity.astype(np.float64), 0.0, 1.0)
        return found


class EditDistance(Configurable):
    """Fewest insertions, deletions and substitutions of one character between a string and the lead (Levenshtein).

    Args:
        lead: A string.

    Raises:
        InputError: If the lead is empty.

    Example:
        >>> EditDistance("MKLV")(["MKLV", "MKV", "MKLVA", "AAAA"]).tolist()
        [0.0, 1.0, 1.0, 4.0]
    """

    largest = math.inf

    def __init__(self, lead: str) -> None:
        if not lead:
            raise InputError("the lead is empty: give a string")
        self.lead = lead
        self.label = f"edit distance from {lead if len(lead) <= 40 else lead[:37] + '...'}"

    def __call__(self, keys: Sequence[str]) -> FloatArray:
        """See `LeadDistance`."""
        return edit_distances(keys, [self.lead])[:, 0].astype(np.float64)


class KernelDistance(Configurable):
    r""":math:`\sqrt{2 - 2 \rho}` with the correlation :math:`\rho = k(s, l) / \sqrt{k(s, s) k(l, l)}` with the lead l.

    It is the distance of the normalised images of two strings in the feature space of the kernel, at the parameters
    that it has before any fit: from 0 to the square root of 2, as long as the kernel has no negative values.

    Args:
        lead: A string.
        kernel: A kernel without batch shape. Default: the sub-sequence kernel of order 5.
        encoder: Turns strings into what the kernel takes. Default: characters.

    Raises:
        InputError: If the lead is empty.

    Example:
        >>> KernelDistance("MKLV")(["MKLV", "MKLA", "AAAA"]).round(2).tolist()
        [0.0, 0.85, 1.41]
    """

    largest = math.sqrt(2.0)

    def __init__(
        self, lead: str, kernel: gpytorch.kernels.Kernel | None = None, encoder: StringEncoder | None = None
    ) -> None:
        if not lead:
            raise InputError("the lead is empty: give a string")
        self.lead, self.kernel, self.encoder = lead, kernel, encoder
        self.label = f"kernel distance from {lead if len(lead) <= 40 else lead[:37] + '...'}"
        self._kernel = default_kernel() if kernel is None else kernel
        self._encoder: StringEncoder = Encoder("characters") if encoder is None else encoder
        bind_symbols(self._kernel, self._encoder)

    @torch.no_grad()
    def __call__(self, keys: Sequence[str]) -> FloatArray:
        """See `LeadDistance`."""
        strings, lead = self._encoder.encode(keys), self._encoder.encode([self.lead])
        width = max(strings.width, lead.width)
        evaluator = KernelEvaluator(self._kernel, width)
        strings, lead = strings.padded(width), lead.padded(width)
        own, own_of_lead = evaluator.self_similarity(strings), evaluator.self_similarity(lead)
        covariance = evaluator.cross(strings, lead, own, own_of_lead)[:, 0]
        correlation = covariance / np.sqrt(evaluator.variance(strings, own) * evaluator.variance(lead, own_of_lead))
        found: FloatArray = np.sqrt(np.maximum(2.0 - 2.0 * np.asarray(correlation, dtype=np.float64), 0.0))
        return found


class StringLength(Configurable):
    """The number of characters of a string: the distance from the empty string, for a penalty on length.

    Example:
        >>> StringLength()(["", "ABC"]).tolist()
        [0.0, 3.0]
    """

    largest = math.inf
    label = "length"

    def __call__(self, keys: Sequence[str]) -> FloatArray:
        """See `LeadDistance`."""
        return np.fromiter(map(len, keys), dtype=np.float64, count=len(keys))


def checked_lead(lead: str, kind: str) -> str:
    """A lead as the strings that it is compared with are written.

    Sequences are in capital letters, without any blanks, molecules are canonical SMILES.

    Args:
        lead: The string as its owner writes it.
        kind: What the strings are. Those that are no molecules, proteins, DNA or RNA only lose the blanks around them.

    Raises:
        InputError: For a sequence with a letter that its kind does not have (the message says where), or a SMILES that
            cannot be read.

    Example:
        >>> checked_lead("mktayi akqr", "protein"), checked_lead("OCC", "molecule"), checked_lead("a b ", "text")
        ('MKTAYIAKQR', 'CCO', 'a b')
        >>> checked_lead("MKTAYIAKQ1", "protein")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: the lead 'MKTAYIAKQ1' cannot be read as protein ('1' at position 10 is not an \
amino-acid letter): give its sequence
    """
    if kind not in (*SEQUENCES, "molecule"):
        return lead.strip()
    text = "".join(lead.split()) if kind in SEQUENCES else lead.strip()
    (key,) = identity_keys([text], kind)
    if key is None:
        why = explain_rejection(text, kind)
        what, give = (kind, "sequence") if kind in SEQUENCES else ("a molecule", "SMILES")
        raise InputError(f"the lead {quoted(lead)} cannot be read as {what} ({why}): give its {give}")
    return key


def lead_distance(lead: str, kind: str, name: str = "auto") -> LeadDistance:
    """A distance from a lead by its name.

    Args:
        lead: The string as its owner writes it.
        kind: What the strings are: ``"molecule"``, ``"protein"``, ...
        name: ``"tanimoto"`` (molecules), ``"edit"``, ``"kernel"``, or ``"auto"``: Tanimoto distance for molecules, edit
            distance for others.

    Raises:
        InputError: For an unknown name, Tanimoto distance where strings are no molecules, or a lead that is no string
            of the kind.

    Example:
        >>> lead_distance("CCO", "molecule").label, lead_distance("MKV", "protein").label
        ('1 - Tanimoto similarity to CCO', 'edit distance from MKV')
    """
    found = name.strip().lower()
    if found not in ("auto", "tanimoto", "edit", "kernel"):
        raise InputError(f"the distance from the lead is {name!r}; expected auto, tanimoto, edit or kernel")
    if found == "tanimoto" and kind != "molecule":
        raise InputError(f"the Tanimoto distance compares molecules, and these strings are of kind {kind!r}: take edit")
    if found == "tanimoto" or (found == "auto" and kind == "molecule"):
        return TanimotoDistance(lead)
    lead = checked_lead(lead, kind)
    return KernelDistance(lead) if found == "kernel" else EditDistance(lead)
