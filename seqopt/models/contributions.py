r"""What a prediction rests on: how much each symbol of a string, or atom of a molecule, adds to it.

The posterior mean of a Gaussian process at x is :math:`m(x) + \sum_j \alpha_j k(x, x_j)`. Where the kernel is a sum
over what x holds, so is what the data add to the prior mean m, and every term belongs to symbols or atoms
(`seqopt.kernels.shares`). For any other kernel, symbols are left out by writing in their places one symbol that no
measured string holds, and atoms by taking all environments away that hold them. There are three methods, and a result
says which was used:

- ``"shares"``: the contributions sum to the prediction less the prior mean. For a kernel without a divisor (counts of
  sub-sequences without normalisation, symbols at positions) they are exact in every sense; for the normalised
  sub-sequence kernel, MinMax and Tanimoto the divisors are held at their values for this string.
- ``"shapley"``, for any other kernel on symbols or environments: by how much the prediction falls, on average over all
  orders in which the parts can be left out one after the other, when it is a part's turn (Shapley 1953). What several
  parts do only together is shared among them, and the contributions sum to the prediction less that of a string of
  which nothing is left. Of strings with more than `EXACT_PARTS` parts an average over drawn orders, each with its
  reverse (Castro et al. 2009, Mitchell et al. 2022), of more than `MOST_PLAYERS` with several in a row as one. Of a
  model whose draws have several kernels, those that have shares contribute these.
- ``"leave-one-out"``: by how much the prediction falls without a part alone (Riniker and Landrum 2013). What several
  parts do only together is counted for each of them, so these do not sum to the prediction.

References:
    Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of Games II, 307-317.
    Castro, J., Gomez, D. and Tejada, J. (2009). Polynomial calculation of the Shapley value based on sampling.
        Computers and Operations Research 36, 1726-1730.
    Mitchell, R., Cooper, J., Frank, E. and Holmes, G. (2022). Sampling permutations for Shapley value estimation.
        J. Machine Learning Research 23 (43), 1-46.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, equation 2.27.
    Riniker, S. and Landrum, G. A. (2013). Similarity maps: a visualization strategy for molecular fingerprints and
        machine-learning methods. J. Cheminformatics 5, 43.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from seqopt.encoding import (
    Encoder,
    FeatureEncoder,
    FeatureRows,
    Fragprints,
    JointEncoder,
    MorganFingerprint,
    SmilesTokenizer,
    TokensAndFeatures,
    VaryingPositions,
)
from seqopt.errors import ModelError
from seqopt.kernels import JointKernel, MinMaxKernel, OneHotKernel, SubsequenceKernel, TanimotoKernel
from seqopt.kernels.shares import feature_shares, masked, symbol_shares
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.gaussian import GaussianSurrogate

FloatArray = npt.NDArray[np.float64]

Method: TypeAlias = Literal["shares", "shapley", "leave-one-out"]

Unit: TypeAlias = Literal["symbol", "atom"]

SAME = 1e-6
"""A prediction and a prior mean that are no further apart count as equal."""

EXACT_PARTS = 10
"""Most parts of which all subsets are left out: 1,024 predictions."""

EVALUATIONS = 8192
"""Predictions with parts left out that orders are drawn for."""

FEWEST_ORDERS = 8
"""Orders that are drawn at least."""

MOST_PLAYERS = 256
"""Most parts that are left out one by one; of longer strings several in a row are left out together."""

BLOCK = 512
"""Predictions at a time, which bounds the memory."""

NO_ATOM = re.compile(r"[-=#$:/\\.()~]|%?\d+|%\(\d+\)")
"""Symbols of a SMILES that are no atoms."""


@dataclass(frozen=True)
class Contributions:
    """How much each part of a string adds to what is predicted of it, in the units of the values.

    Attributes:
        unit: Whether parts are symbols, as the model splits the string into them, or atoms.
        parts: The symbols, or the atoms' symbols, in the order of the string.
        values: What each adds, as long as ``parts``.
        method: How they were worked out; see `seqopt.models.contributions`.
        prior_mean: What is predicted of a string that shares nothing with those measured.
        prediction: What is predicted of this one.
    """

    unit: Unit
    parts: tuple[str, ...]
    values: FloatArray
    method: Method
    prior_mean: float
    prediction: float

    @property
    def rest(self) -> float:
        """What of the prediction neither the prior mean nor a part accounts for.

        By ``"shares"`` it is 0, but for rounding and what belongs to no atom: functional groups that are counted, and
        bonds and brackets where the text of a SMILES is compared, too. By ``"shapley"`` it is what is predicted of a
        string of which nothing is left, less the prior mean: the same, and of short strings more, which are like
        nothing of their length.
        """
        return self.prediction - self.prior_mean - float(self.values.sum())

    def signed(self, sign: float) -> Contributions:
        """The same for values that are ``sign`` (1 or -1) times those of the model, as a user's may be."""
        values, prior_mean, prediction = sign * self.values, sign * self.prior_mean, sign * self.prediction
        return replace(self, values=values, prior_mean=prior_mean, prediction=prediction)

    def in_units(self, inverse: Callable[[float], float]) -> Contributions:
        """The same in the units of values of which the model has seen a transform.

        The prior mean and the prediction are turned back, and each part keeps its share of what lies between them (of
        the slope there, where they are equal), so that what summed to the prediction still does.

        Args:
            inverse: From what the model sees to the units of the values; increasing.

        Example:
            >>> found = Contributions("symbol", ("A", "B"), np.array([0.25, 0.75]), "shares", 1.0, 2.0)
            >>> back = found.in_units(lambda value: 10**value)
            >>> back.prior_mean, back.prediction, back.values.tolist(), back.rest
            (10.0, 100.0, [22.5, 67.5], 0.0)
        """
        low, high = inverse(self.prior_mean), inverse(self.prediction)
        apart = self.prediction - self.prior_mean
        if abs(apart) < SAME:
            beyond = inverse(self.prediction + SAME)
            factor = (beyond - high) / SAME
        else:
            factor = (high - low) / apart
        return replace(self, values=factor * self.values, prior_mean=low, prediction=high)

    def by_atom(self, smiles: str) -> FloatArray:
        """What each atom of a molecule adds, for drawing: parts that are symbols belong to the atom they write.

        Args:
            smiles: The string.

        Raises:
            ModelError: If the parts are symbols that do not make up a SMILES.
        """
        if self.unit == "atom":
            return self.values
        atoms = atoms_of_symbols(smiles, self.parts)
        # A symbol may write several atoms; what it adds is the first one's.
        found = np.zeros(_count_atoms(smiles))
        np.add.at(found, atoms[atoms >= 0], self.values[atoms >= 0])
        return found


def contributions_of(
    surrogate: Any,
    string: str,
    method: Method | None = None,
    *,
    rng: np.random.Generator | None = None,
    evaluations: int = EVALUATIONS,
) -> Contributions:
    """What a surrogate's prediction of a string rests on.

    Args:
        surrogate: Fitted; a Gaussian process on symbols, on fingerprints of molecules, or on both.
        string: As the surrogate takes it (a key).
        method: ``"shares"``, ``"shapley"`` or ``"leave-one-out"``. Default: shares where the kernel has them, else
            Shapley values.
        rng: Draws the orders of ``"shapley"``. Default: the same ones each time.
        evaluations: Predictions with parts left out that orders are drawn for; at least `FEWEST_ORDERS` orders are.

    Raises:
        ModelError: If the surrogate has not been fitted, or cannot say: other features, contexts, a model that is not a
            Gaussian process; or has no shares, if these are asked for.

    Example:
        >>> from seqopt.models import StringGP
        >>> gp = StringGP()
        >>> gp.fit(["AAAA", "AABA", "BBAA", "BBBB", "ABAB"], [0, 1, 2, 4, 2], rng=np.random.default_rng(0))
        >>> found = contributions_of(gp, "BABB")
        >>> found.parts, found.method, abs(found.rest) < 1e-6
        (('B', 'A', 'B', 'B'), 'shares', True)
        >>> bool(found.values[0] > found.values[1])
        True
    """
    if not isinstance(surrogate, GaussianSurrogate):
        raise ModelError(
            f"{type(surrogate).__name__} is not a Gaussian process: it cannot say what its predictions rest on"
        )
    state, encoder = surrogate.fitted, surrogate.encoder
    if state.wanted is not None or not isinstance(encoder, Encoder | FeatureEncoder | JointEncoder):
        raise ModelError(f"symbols or atoms have no contributions under the encoder {encoder.name}")
    parts = _Parts.of(encoder, string)
    row = encoder.encode([string])
    mean = surrogate.predict([string])[0]
    offset, unit = surrogate.units
    prior = offset + unit * float(state.mean([string]).mean())
    found, used = _by(method, _members(surrogate), surrogate, row, parts, rng, evaluations)
    return Contributions(parts.unit, parts.names, unit * found, used, float(prior), float(np.asarray(mean)[0]))


@dataclass(frozen=True)
class _Parts:
    """The parts of one string.

    Attributes:
        unit: What they are.
        names: One for each.
        symbols: Which of the L symbols each part is made of, ``parts x L``, where symbols are compared.
        environments: Columns and atoms, where environments are compared.
    """

    unit: Unit
    names: tuple[str, ...]
    symbols: npt.NDArray[np.bool_] | None = None
    environments: tuple[tuple[int, tuple[int, ...]], ...] | None = None

    @classmethod
    def of(cls, encoder: Encoder | FeatureEncoder | JointEncoder, string: str) -> _Parts:
        if isinstance(encoder, Encoder):
            symbols = encoder.tokenizer.tokenize(string)
            own = np.eye(len(symbols), dtype=bool)
            return cls(
                "symbol", tuple(symbols), own[:, encoder.kept(string)] if isinstance(encoder, VaryingPositions) else own
            )
        features = encoder.features if isinstance(encoder, JointEncoder) else encoder
        featurizer = features.featurizer
        if not isinstance(featurizer, MorganFingerprint | Fragprints):
            raise ModelError(f"symbols or atoms have no contributions under the features {features.name}")
        from rdkit import Chem

        environments = tuple(featurizer.environments(string))
        names = tuple(atom.GetSymbol() for atom in Chem.MolFromSmiles(string).GetAtoms())
        if not isinstance(encoder, JointEncoder):
            return cls("atom", names, None, environments)
        atoms = atoms_of_symbols(string, encoder.tokens.tokenizer.tokenize(string))
        return cls("atom", names, atoms == np.arange(len(names))[:, None], environments)

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Which parts hold anything that is compared."""
        found = np.zeros(len(self.names), dtype=np.bool_)
        found[[atom for _, atoms in self.environments or () for atom in atoms]] = True
        if self.symbols is not None:
            found |= self.symbols.any(axis=1)
        return found

    def belongs(self, columns: npt.NDArray[np.int64]) -> FloatArray:
        """How much of each of m columns belongs to each atom, ``m x atoms``: environments in equal shares."""
        place = {int(column): index for index, column in enumerate(columns)}
        found = np.zeros((len(columns), len(self.names)))
        counts = np.zeros(len(columns))
        for column, atoms in self.environments or ():
            counts[place[column]] += 1.0
            found[place[column], list(atoms)] += 1.0 / len(atoms)
        return np.divide(found, counts[:, None], out=found, where=counts[:, None] > 0)

    def without(self, row: FeatureRows, gone: npt.NDArray[np.bool_], counted: bool) -> FeatureRows:
        """The features of the molecule without the environments that hold an atom that is gone, ``m x atoms``."""
        environments = self.environments or ()
        holds = np.zeros((len(environments), len(self.names)))
        for index, (_, atoms) in enumerate(environments):
            holds[index, list(atoms)] = 1.0
        columns, of = np.unique([column for column, _ in environments], return_inverse=True)
        left = (gone.astype(np.float64) @ holds.T == 0) @ np.eye(len(columns))[of]
        rows = np.repeat(row.dense(), len(gone), axis=0)
        rows[:, columns] = left if counted else np.minimum(left, 1.0)
        return FeatureRows(sparse.csr_array(rows))


@dataclass(frozen=True)
class _Member:
    """One of the kernels that the draws of a model have.

    Attributes:
        evaluator: Of the kernel, of b draws of its parameters.
        weights: What covariances with the n data count in the posterior mean, standardised, ``b x n``: means over all
            draws of the model.
    """

    evaluator: KernelEvaluator
    weights: FloatArray


def _members(surrogate: GaussianSurrogate) -> list[_Member]:
    """The kernels of a model that add to its predictions."""
    state = surrogate.fitted
    evaluator = state.evaluator
    members = [evaluator] if isinstance(evaluator, KernelEvaluator) else evaluator.members
    index = list(range(state.draws)) if isinstance(evaluator, KernelEvaluator) else evaluator.index
    weights = (state.scale[:, None] * state.alpha).numpy() / state.draws
    whole = np.zeros((sum(member.draws for member in members), weights.shape[1]))
    np.add.at(whole, np.array(index) % len(whole), weights)
    starts = np.cumsum([0, *(member.draws for member in members)])
    found = [
        _Member(member, whole[start:end]) for member, start, end in zip(members, starts[:-1], starts[1:], strict=True)
    ]
    return [member for member in found if member.weights.any()]


def _by(
    method: Method | None,
    members: Sequence[_Member],
    surrogate: GaussianSurrogate,
    row: Any,
    parts: _Parts,
    rng: np.random.Generator | None,
    evaluations: int,
) -> tuple[FloatArray, Method]:
    """Contributions, standardised, and how they were worked out."""
    total = np.zeros(len(parts.names))
    rest = list(members)
    if method in (None, "shares"):
        rest = []
        for member in members:
            shares = _of_kernel(member.evaluator.kernel, row, surrogate.fitted.encoded, parts)
            if shares is None:
                rest.append(member)
            else:
                flat = shares.reshape(-1, *shares.shape[-2:])
                total += np.einsum("bpn,bn->p", flat, member.weights)
        if not rest:
            return total, "shares"
        if method == "shares":
            raise ModelError(
                "the kernel is not a sum over parts of a string: it has no shares, take shapley or leave-one-out"
            )
    without = _Without(rest, surrogate, row, parts)
    if method == "leave-one-out":
        return without.alone(), method
    return total + without.shapley(np.random.default_rng(0) if rng is None else rng, evaluations), "shapley"


def _of_kernel(kernel: Any, row: Any, others: Any, parts: _Parts) -> FloatArray | None:
    """Shares of the parts in the covariances with others, ``... x parts x n``."""
    found: FloatArray
    if isinstance(kernel, SubsequenceKernel | OneHotKernel) and parts.symbols is not None:
        found = parts.symbols.astype(np.float64) @ symbol_shares(kernel, row, others)
        return found
    if isinstance(kernel, MinMaxKernel | TanimotoKernel) and parts.environments is not None:
        columns, values = feature_shares(kernel, row, others)
        found = parts.belongs(columns).T @ values
        return found
    if isinstance(kernel, JointKernel) and isinstance(row, TokensAndFeatures):
        by_symbols = _of_kernel(kernel.tokens, row.tokens, others.tokens, parts)
        by_features = _of_kernel(kernel.features, row.features, others.features, parts)
        if by_symbols is None or by_features is None:
            return None
        weight = float(kernel.weight.detach())
        return weight * by_symbols + (1.0 - weight) * by_features
    return None


@dataclass(frozen=True)
class _Without:
    """What some kernels add to the prior mean of a string without some of its parts, standardised."""

    members: Sequence[_Member]
    surrogate: GaussianSurrogate
    row: Any
    parts: _Parts

    def alone(self) -> FloatArray:
        """By how much the prediction falls without each part."""
        number = len(self.parts.names)
        means = self._blocks(1 + number, lambda rows: rows[:, None] == np.arange(1, number + 1))
        return means[0] - means[1:]

    def shapley(self, rng: np.random.Generator, evaluations: int) -> FloatArray:
        """The mean of that over the orders in which parts are left out, exactly or over drawn ones.

        Parts that the model does not see contribute nothing. Of more than `MOST_PLAYERS` others as many in a row as it
        takes are left out together, and share alike.
        """
        seen = np.flatnonzero(self.parts.seen)
        together = max(1, -(-len(seen) // MOST_PLAYERS))
        found = np.zeros(len(self.parts.names))
        if not len(seen):
            return found
        # Parts that are not seen go with the first: nothing changes with them.
        player = np.zeros(len(found), dtype=np.int64)
        player[seen] = np.arange(len(seen)) // together
        number = int(player[seen].max()) + 1
        exact = number <= EXACT_PARTS
        by_player = self._exactly(number, player) if exact else self._drawn(number, player, rng, evaluations)
        found[seen] = (by_player / np.bincount(player[seen]))[player[seen]]
        return found

    def _exactly(self, number: int, player: npt.NDArray[np.int64]) -> FloatArray:
        subsets = np.arange(2**number)[:, None] >> np.arange(number) & 1 == 1
        means = self._blocks(len(subsets), lambda rows: subsets[rows][:, player])
        sizes = subsets.sum(1)
        found = np.zeros(number)
        for one in range(number):
            before = np.flatnonzero(~subsets[:, one])
            weights = 1.0 / (number * np.array([math.comb(number - 1, size) for size in sizes[before]]))
            found[one] = weights @ (means[before] - means[before + (1 << one)])
        return found

    def _drawn(
        self, number: int, player: npt.NDArray[np.int64], rng: np.random.Generator, evaluations: int
    ) -> FloatArray:
        pairs = max(FEWEST_ORDERS, evaluations // number) // 2
        drawn = rng.permuted(np.tile(np.arange(number), (pairs, 1)), axis=1)
        orders = np.concatenate([drawn, drawn[:, ::-1]])
        # Place of each player in each order; after k steps those at the places before k are gone.
        places = np.argsort(orders, axis=1)

        def gone(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
            order, step = np.divmod(rows, number - 1)
            return (places[order] < step[:, None] + 1)[:, player]

        inner = self._blocks(len(orders) * (number - 1), gone).reshape(len(orders), number - 1)
        ends = self._blocks(2, lambda rows: np.repeat(rows[:, None] == 1, len(player), axis=1))
        means = np.hstack([np.full((len(orders), 1), ends[0]), inner, np.full((len(orders), 1), ends[1])])
        found = np.zeros((len(orders), number))
        np.put_along_axis(found, orders, means[:, :-1] - means[:, 1:], axis=1)
        return found.mean(0)

    def _blocks(self, count: int, gone: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]) -> FloatArray:
        """Predictions without the parts that are gone, ``rows x parts`` of the numbers of some rows."""
        blocks = np.split(np.arange(count), range(BLOCK, count, BLOCK))
        return np.concatenate([self._added(self._encoded(gone(rows))) for rows in blocks])

    def _added(self, encoded: Any) -> FloatArray:
        others = self.surrogate.fitted.encoded
        width = max(encoded.width, others.width)
        encoded, found = encoded.padded(width), np.zeros(len(encoded))
        for member in self.members:
            rows = member.evaluator.cross(encoded, others).astype(np.float64)
            found += np.einsum("bmn,bn->m", rows.reshape(-1, *rows.shape[-2:]), member.weights)
        return found

    def _encoded(self, gone: npt.NDArray[np.bool_]) -> Any:
        row, parts, encoder = self.row, self.parts, self.surrogate.encoder
        less: Any = None
        if parts.symbols is not None:
            encoded = self.surrogate.fitted.encoded
            known: Any = encoded.tokens if isinstance(encoded, TokensAndFeatures) else encoded
            # Where numbers mean something, one that stands for nothing lies beyond them.
            beyond = len(encoder.alphabet) if isinstance(encoder, Encoder) else 0
            # A symbol belongs to one part at most.
            groups = gone[:, parts.symbols.argmax(0)] & parts.symbols.any(0)
            less = masked(row.tokens if isinstance(row, TokensAndFeatures) else row, known, groups, beyond=beyond)
        if parts.environments is not None:
            of: Any = encoder.features if isinstance(encoder, JointEncoder) else encoder
            featurizer = of.featurizer
            fingerprint = featurizer.fingerprint if isinstance(featurizer, Fragprints) else featurizer
            features = row.features if isinstance(row, TokensAndFeatures) else row
            rest = parts.without(features, gone, fingerprint.counts)
            less = rest if less is None else TokensAndFeatures(less, rest)
        return less


def _count_atoms(smiles: str) -> int:
    return sum(NO_ATOM.fullmatch(token) is None for token in SmilesTokenizer().tokenize(smiles))


def atoms_of_symbols(smiles: str, symbols: Sequence[str]) -> npt.NDArray[np.int64]:
    """The atom that each symbol of a SMILES writes, or helps to write: its index, -1 for bonds, branches and rings.

    Args:
        smiles: Whose atoms RDKit numbers as they stand in it.
        symbols: The same, split in whatever way.

    Raises:
        ModelError: If the symbols do not make up the string.

    Example:
        >>> atoms_of_symbols("C(Cl)[nH]", list("C(Cl)[nH]")).tolist()
        [0, -1, 1, 1, -1, 2, 2, 2, 2]
    """
    if "".join(symbols) != smiles:
        raise ModelError(f"the symbols of the model do not make up the SMILES {smiles!r}")
    owner = []
    number = -1
    for token in SmilesTokenizer().tokenize(smiles):
        is_atom = NO_ATOM.fullmatch(token) is None
        number += is_atom
        owner += [number if is_atom else -1] * len(token)
    starts = np.cumsum([0, *map(len, symbols)])[:-1]
    return np.array([owner[start] for start in starts], dtype=np.int64)
