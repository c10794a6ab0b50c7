"""Variational autoencoders of strings: strings to latent points and back.

The objective, maximised over encoder and decoder by `seqopt.vae.training`, is for each string s

    E_{q(z|s)} log p(s|z) - w KL(q(z|s) || N(0, I)),

with a KL weight w of 1 for the evidence lower bound (Kingma and Welling 2014), and less where reconstruction matters
more than samples from the prior (Higgins et al. 2017 write beta).

References:
    Kingma, D. P., Welling, M. (2014). Auto-encoding variational Bayes. ICLR.
    Gomez-Bombarelli, R. et al. (2018). Automatic chemical design using a data-driven continuous representation of
        molecules. ACS Central Science 4, 268-276.
    Kusner, M. J., Paige, B., Hernandez-Lobato, J. M. (2017). Grammar variational autoencoder. ICML.
    Higgins, I. et al. (2017). beta-VAE. ICLR.
"""

from __future__ import annotations

import hashlib
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from seqopt.encoding.features import refused
from seqopt.errors import InputError
from seqopt.grammar import Rules, read_grammar
from seqopt.vae.character import CharacterCodec
from seqopt.vae.checkpoint import QUANTILES, WEIGHTS, Checkpoint, error_line, open_checkpoint, write_checkpoint
from seqopt.vae.codecs import Codec
from seqopt.vae.grammar import GrammarCodec
from seqopt.vae.networks import NetworkSizes, VariationalNetwork, resolve_device, torch_threads
from seqopt.vae.selfies import SelfiesCodec

FloatArray = npt.NDArray[np.float64]

BLOCK = 512
"""Strings that go through a network at once."""

LEVELS = np.linspace(0.0, 1.0, 201)
"""Levels at which quantiles of the training encodings are kept."""


class StringVAE:
    """A trained variational autoencoder. It is a `seqopt.encoding.Featurizer`: its features are posterior means.

    With ``FeatureEncoder(vae)`` as encoder and a squared-exponential kernel, `seqopt.models.StringGP` is a Gaussian
    process in latent space; `seqopt.search.LatentSearch` optimises there.

    Args:
        codec: Turns strings into rows of symbols.
        network: Encoder and decoder.
        quantiles: ``201 x latent``: quantiles, at levels 0, 0.005, ..., 1, of the posterior means of the strings it
            was trained on.
        facts: What else is known of it, as JSON values: settings of the training, what was measured.

    Attributes:
        name: Model and the beginning of the SHA-256 of the weights.
        size: Latent dimensions.

    Example:
        >>> from seqopt.vae import CharacterCodec, NetworkSizes, TrainingSettings, train
        >>> strings = ["".join(p) for p in __import__("itertools").product("ab", repeat=4)]
        >>> settings = TrainingSettings(epochs=100, batch_size=4, held_out=0.0)
        >>> sizes = NetworkSizes(latent=4, hidden=32)
        >>> vae = train(strings, CharacterCodec.of(strings), sizes, settings, rng=np.random.default_rng(0)).vae
        >>> vae(["abba", "aaaa"]).shape, vae.decode(vae(["abba"]))
        ((2, 4), ['abba'])
    """

    def __init__(
        self,
        codec: Codec,
        network: VariationalNetwork,
        quantiles: FloatArray,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.codec = codec
        self.network = network.eval()
        self.quantiles = quantiles
        self.facts = dict(facts or {})
        self.size = network.sizes.latent
        digest = hashlib.sha256()
        for weights in network.state_dict().values():
            digest.update(weights.cpu().numpy().tobytes())
        self.name = f"{codec.model}-vae-{digest.hexdigest()[:12]}"

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Posterior means of ``strings``, ``n x size``.

        Raises:
            InputError: For a string that the model cannot read: symbols outside its alphabet, one that its grammar
                does not derive (with the position), or one that is too long.
        """
        return self.posterior(strings)[0]

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why the model cannot read strings, by their indices; empty where it can read all."""
        return refused(self.codec.encode, strings)

    def posterior(self, strings: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations, ``n x size`` each, of the codes of ``strings``.

        Raises:
            InputError: As for a call.
        """
        rows = torch.from_numpy(self.codec.encode(strings))
        means, deviations = [np.zeros((0, self.size))], [np.zeros((0, self.size))]
        with torch_threads(1 if len(rows) <= BLOCK else None), torch.no_grad():
            for block in torch.split(rows, BLOCK):
                mean, log_variance = self.network.posterior(block.to(self.device))
                means.append(mean.double().cpu().numpy())
                deviations.append((0.5 * log_variance.double()).exp().cpu().numpy())
        return np.concatenate(means), np.concatenate(deviations)

    def decode(self, points: npt.ArrayLike) -> list[str]:
        """The strings of latent points: the most likely symbol at each step, given those before it.

        A grammar model gives strings of its grammar, whatever the point; a character model gives any string.

        Args:
            points: ``n x size``.

        Raises:
            InputError: If ``points`` has another shape or entries that are not finite.
        """
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.size:
            raise InputError(f"points have shape {array.shape}; expected n x {self.size}")
        if not np.isfinite(array).all():
            raise InputError("a latent point has an entry that is not finite")
        strings: list[str] = []
        for start in range(0, len(array), BLOCK):
            strings += self.codec.decode(self._greedy(array[start : start + BLOCK]))
        return strings

    def _greedy(self, points: FloatArray) -> npt.NDArray[np.int64]:
        network, writing = self.network, self.codec.writing(len(points))
        rows = np.zeros((len(points), self.codec.steps), dtype=np.int64)
        # A step is little work: waiting for a second thread would cost more than it brings.
        with torch_threads(1), torch.no_grad():
            codes = torch.from_numpy(points).float().to(self.device)
            features, state = network.features(codes), network.start(codes)
            previous = torch.full((len(points), 1), network.before, device=self.device)
            for step in range(self.codec.steps):
                contexts = writing.contexts()
                if not contexts.any():
                    break
                here = torch.from_numpy(contexts[:, None]).to(self.device)
                logits, state = network.logits(features[:, step : step + 1], here, previous, state)
                allowed = torch.from_numpy(writing.allowed()).to(self.device)
                previous = logits[:, 0].masked_fill(~allowed, -torch.inf).argmax(dim=1, keepdim=True)
                rows[:, step] = previous[:, 0].cpu().numpy()
                writing.write(rows[:, step])
        return rows

    def reconstruct(self, strings: Sequence[str]) -> list[str]:
        """Each string encoded to its posterior mean and decoded.

        Raises:
            InputError: As for a call.
        """
        return self.decode(self(strings))

    def box(self, coverage: float = 0.75) -> FloatArray:
        """Lower and upper bounds, ``2 x size``, of the central share ``coverage`` of the training encodings in each
        dimension.

        Raises:
            InputError: If ``coverage`` lies outside (0, 1].
        """
        if not 0.0 < coverage <= 1.0:
            raise InputError(f"coverage is {coverage!r}; it must lie in (0, 1]")
        levels = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]
        return np.stack([np.interp(levels, LEVELS, column) for column in self.quantiles.T], axis=1)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.network.output.weight.device

    def to(self, device: str | torch.device) -> StringVAE:
        """Move the network to a device, ``"auto"`` for the GPU where there is one; returns itself.

        Raises:
            InputError: For a device that is not there.
        """
        self.network.to(resolve_device(device))
        return self

    def expect(
        self,
        *,
        model: str | None = None,
        grammar: str | os.PathLike[str] | Rules | None = None,
        alphabet: Sequence[str] | None = None,
        where: str = "this model",
    ) -> None:
        """Complain if this is not the model that was wanted.

        Args:
            model: ``"character"``, ``"grammar"`` or ``"selfies"``.
            grammar: The grammar that it must have been made for: a name, a file, or its rules. A character model is
                refused.
            alphabet: Symbols that a character model must read.
            where: Names this model in messages.

        Raises:
            InputError: If it was made for something else; the message names both.
        """
        if model is not None and model != self.codec.model:
            raise InputError(f"{where} is {self.codec.describe()}; a {model} model was asked for")
        if grammar is not None:
            name = "the one given"
            if not isinstance(grammar, Rules):
                name = repr(os.fspath(grammar))
                loaded, locations = read_grammar(grammar)
                grammar = Rules.of(loaded, locations)
            if not isinstance(self.codec, GrammarCodec) or not self.codec.same_rules(grammar):
                raise InputError(
                    f"{where} is {self.codec.describe()}; one for the grammar {name} of {len(grammar)} rules was "
                    "asked for"
                )
        if alphabet is not None and isinstance(self.codec, CharacterCodec):
            unknown = [symbol for symbol in alphabet if symbol not in self.codec.alphabet]
            if unknown:
                raise InputError(
                    f"{where} is {self.codec.describe()}; one for the alphabet {' '.join(alphabet)} was asked for, and "
                    f"it lacks {' '.join(unknown)}"
                )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a file, atomically; `load` reads it.

        Raises:
            InputError: If the file cannot be written.
        """
        facts, arrays = self.to_checkpoint()
        write_checkpoint(path, facts, arrays)

    def to_checkpoint(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What `save` writes: JSON values and arrays."""
        facts = {**self.facts, **model_facts(self.codec, self.network.sizes)}
        return facts, {**weight_arrays(self.network, WEIGHTS), QUANTILES: self.quantiles}

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        model: str | None = None,
        grammar: str | os.PathLike[str] | Rules | None = None,
        alphabet: Sequence[str] | None = None,
        device: str | torch.device = "cpu",
    ) -> StringVAE:
        """Read a model from the file that `save`, or a training, wrote. Nothing in the file is run.

        Args:
            path: The file.
            model: What is expected; see `expect`.
            grammar: What is expected; see `expect`.
            alphabet: What is expected; see `expect`.
            device: Where it is to compute; ``"auto"`` is the GPU where there is one.

        Raises:
            InputError: If there is no such file, it is no model file, or it is not what is expected.
        """
        with open_checkpoint(path) as checkpoint:
            codec, network = rebuild(checkpoint)
            load_weights(checkpoint, network, WEIGHTS)
            quantiles = _quantiles(checkpoint, network.sizes.latent)
        for name, weights in network.named_parameters():
            if not bool(torch.isfinite(weights).all()):
                raise InputError(f"{path} is damaged: its weights {name} are not finite, expected finite numbers")
        own = {"codec", "sizes", "format", "version"}
        vae = cls(codec, network, quantiles, {name: fact for name, fact in checkpoint.facts.items() if name not in own})
        vae.expect(model=model, grammar=grammar, alphabet=alphabet, where=str(path))
        return vae.to(device)

    def __repr__(self) -> str:
        return f"StringVAE({self.name!r}, {self.size} latent dimensions, {self.codec.describe()})"


def build_network(codec: Codec, sizes: NetworkSizes) -> VariationalNetwork:
    """A network with random weights, from torch's own generator."""
    possible, change = torch.from_numpy(codec.possible), torch.from_numpy(codec.change)
    return VariationalNetwork(codec.symbols, possible, codec.steps, sizes, least=codec.least, change=change)


def model_facts(codec: Codec, sizes: NetworkSizes) -> dict[str, Any]:
    """What `rebuild` needs, as JSON values."""
    return {"codec": codec.to_json(), "sizes": sizes.to_json()}


class _Unfilled(TorchFunctionMode):
    """Weights are not drawn: for the first random number on the meta device torch imports for seconds."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in ("uniform_", "normal_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def rebuild(checkpoint: Checkpoint) -> tuple[Codec, VariationalNetwork]:
    """Codec and network of the facts of a file, once its weights are seen to fit; the network's own are random.

    Raises:
        InputError: If the facts do not describe a model, or the file holds other weights than that model has.
    """
    path, facts = checkpoint.path, checkpoint.facts
    makers: dict[str, Any] = {maker.model: maker for maker in (CharacterCodec, GrammarCodec, SelfiesCodec)}
    with torch.random.fork_rng(devices=[]):
        try:
            codec: Codec = makers[facts["codec"]["model"]].from_json(facts["codec"])
            sizes = NetworkSizes(**facts["sizes"])
            # Tensors on the meta device have shapes but take no memory, however large the sizes are.
            with torch.device("meta"), _Unfilled():
                outline = build_network(codec, sizes)
        except (
            *(KeyError, TypeError, ValueError, IndexError, AttributeError),
            *(OverflowError, RuntimeError, MemoryError),
        ) as error:
            raise InputError(f"{path} is damaged: it does not describe a model ({error_line(error)})") from error
        _check_weights(checkpoint, outline, WEIGHTS)
        try:
            return codec, build_network(codec, sizes)
        except (RuntimeError, MemoryError) as error:
            raise InputError(f"cannot read {path}: its model needs more memory than there is") from error


def weight_arrays(network: VariationalNetwork, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Copies of the weights, by name behind ``prefix``."""
    return {prefix + name: weights.cpu().numpy().copy() for name, weights in network.state_dict().items()}


def load_weights(checkpoint: Checkpoint, network: VariationalNetwork, prefix: str) -> None:
    """Put the weights behind ``prefix`` in a file into a network.

    Raises:
        InputError: If some are missing, have another shape, or are not of that network.
    """
    _check_weights(checkpoint, network, prefix)
    network.load_state_dict({name: torch.from_numpy(checkpoint.read(prefix + name)) for name in network.state_dict()})


def _check_weights(checkpoint: Checkpoint, network: VariationalNetwork, prefix: str) -> None:
    """Refuse weights that are not those of ``network``, before any of them is read."""
    expected = {prefix + name: tuple(weights.shape) for name, weights in network.state_dict().items()}
    for name, shape in expected.items():
        entry = checkpoint.entries.get(name)
        if entry is None or entry.shape != shape or entry.dtype != np.float32:
            found = "there are none" if entry is None else f"found {entry.dtype} of shape {reprlib.repr(entry.shape)}"
            raise InputError(
                f"{checkpoint.path} is damaged: its weights {name.removeprefix(prefix)} do not fit the model that it "
                f"describes: {found}, expected float32 of shape {shape}"
            )
    for name in checkpoint.entries:
        if name.startswith(prefix) and name not in expected:
            raise InputError(
                f"{checkpoint.path} is damaged: the model that it describes has no weights "
                f"{reprlib.repr(name.removeprefix(prefix))}"
            )


def _quantiles(checkpoint: Checkpoint, latent: int) -> FloatArray:
    """Quantiles from a file.

    Raises:
        InputError: If they are missing, have another shape or are not finite.
    """
    shape, entry = (len(LEVELS), latent), checkpoint.entries.get(QUANTILES)
    if entry is None:
        raise InputError(f"{checkpoint.path} is damaged: it lacks the quantiles of its training encodings")
    if entry.shape != shape or entry.dtype not in (np.float64, np.float32):
        raise InputError(
            f"{checkpoint.path} is damaged: the quantiles of its training encodings are {entry.dtype} of shape "
            f"{reprlib.repr(entry.shape)}, expected float64 of shape {shape}"
        )
    quantiles = checkpoint.read(QUANTILES).astype(np.float64)
    if not np.isfinite(quantiles).all():
        raise InputError(
            f"{checkpoint.path} is damaged: the quantiles of its training encodings are not all finite, expected "
            "finite numbers"
        )
    return quantiles


def training_quantiles(encodings: FloatArray) -> FloatArray:
    """Quantiles of encodings (``n x latent``) at `LEVELS`."""
    quantiles: FloatArray = np.quantile(encodings, LEVELS, axis=0)
    return quantiles
