"""The network of a variational autoencoder of strings, and the terms of its objective.

- *Encoder*: the embeddings of all symbols of a row, side by side, go through a perceptron to the mean and the
  logarithm of the variance of a Gaussian over the latent space. For long strings three layers of convolutions, which
  see the same pieces wherever they stand, come before (Gomez-Bombarelli et al. 2018).
- *Decoder*: a perceptron turns a latent point into one vector of features for each step. A small recurrent network (a
  GRU) reads the symbols written so far beside these features, so that what is written stays consistent. The sum of the
  features, of its state and of an embedding of the context (what the codec says may follow) is rectified, and a linear
  layer gives the logits. Most of the work is in the perceptrons, which compute all steps at once.
- A *second decoder*, for long strings, differs in three things: the recurrent network starts at a state that follows
  from the latent point, it sees the context too, and the logits are linear in its state and the features side by side,
  so that no step is squeezed through as few numbers as it has features.

What the context forbids has probability zero.

References:
    Kingma, D. P., Welling, M. (2014). Auto-encoding variational Bayes. ICLR (equation 10 for the objective, appendix B
        for the divergence).
    Gomez-Bombarelli, R. et al. (2018). Automatic chemical design using a data-driven continuous representation of
        molecules. ACS Central Science 4, 268-276.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqopt.errors import InputError

WINDOW = 7
"""Symbols that a convolution sees at once."""

SMILES_SIZES: Mapping[str, int] = MappingProxyType({"channels": 64, "decoder": 2, "features": 64, "memory": 192})
"""How the network for SMILES of molecules differs."""

_LOCK = threading.RLock()


@dataclass(frozen=True)
class NetworkSizes:
    """Sizes of a `VariationalNetwork`.

    Args:
        latent: Dimensions of the latent space.
        hidden: Units of each hidden layer of encoder and decoder: two of them, one in an encoder with convolutions.
        embedding: Dimensions of a symbol's embedding in the encoder.
        features: Features of a step in the decoder.
        memory: Units of the decoder's recurrent network.
        channels: Of each of three layers of convolutions before the encoder's perceptron; 0 for none.
        decoder: 1 for the first decoder of the module, 2 for the second.

    Raises:
        InputError: If a size is not an integer of at least 1, or of at least 0 for ``channels``; or ``decoder`` is
            neither 1 nor 2.
    """

    latent: int
    hidden: int = 512
    embedding: int = 32
    features: int = 48
    memory: int = 96
    channels: int = 0
    decoder: int = 1

    def __post_init__(self) -> None:
        for name, size in asdict(self).items():
            least = int(name != "channels")
            if isinstance(size, bool) or not isinstance(size, int) or size < least:
                raise InputError(f"{name} is {size!r}; expected an integer of at least {least}")
        if self.decoder > 2:
            raise InputError(f"decoder is {self.decoder!r}; expected 1 or 2")

    def to_json(self) -> dict[str, int]:
        """As JSON values."""
        return asdict(self)


class VariationalNetwork(nn.Module):
    """Encoder and decoder; see the module.

    Args:
        symbols: Number of symbols, without padding.
        possible: ``contexts x (symbols + 1)``: which symbols each context allows.
        steps: Width W of rows.
        sizes: The sizes of the layers.
        least: How many symbols the shortest row has.
        change: ``symbols + 1``: by how much each symbol changes the number of symbols with which a string could end.
    """

    possible: Tensor
    change: Tensor
    decoder: nn.Sequential

    def __init__(
        self, symbols: int, possible: Tensor, steps: int, sizes: NetworkSizes, *, least: int, change: Tensor
    ) -> None:
        super().__init__()
        self.least = least
        self.steps = steps
        self.sizes = sizes
        hidden = sizes.hidden
        self.register_buffer("possible", possible.bool(), persistent=False)
        self.register_buffer("change", change, persistent=False)
        self.embedding = nn.Embedding(symbols + 1, sizes.embedding)
        self.convolutions = _convolutions(sizes.embedding, sizes.channels) if sizes.channels else None
        if self.convolutions is None:
            self.encoder = _perceptron(steps * sizes.embedding, hidden, hidden, 2 * sizes.latent)
        else:
            self.encoder = _perceptron(sizes.channels * _shortened(steps), hidden, 2 * sizes.latent)
        self.decoder = _perceptron(sizes.latent, hidden, hidden, steps * sizes.features)
        self.context = nn.Embedding(len(possible), sizes.features)
        # Symbol symbols + 1 stands before the first.
        self.before = symbols + 1
        self.previous = nn.Embedding(symbols + 2, sizes.features)
        self.memory = nn.GRU(sizes.features, sizes.memory, batch_first=True)
        if sizes.decoder == 1:
            self.recall = nn.Linear(sizes.memory, sizes.features)
            self.output = nn.Linear(sizes.features, symbols + 1)
        else:
            self.beginning = nn.Linear(sizes.latent, sizes.memory)
            self.output = nn.Linear(sizes.memory + sizes.features, symbols + 1)

    def posterior(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the variance, both ``n x latent``, of the codes of ``rows`` (``n x W``)."""
        embedded = self.embedding(rows)
        if self.convolutions is not None:
            embedded = self.convolutions(embedded.transpose(1, 2))
        mean, log_variance = self.encoder(embedded.flatten(1)).chunk(2, dim=1)
        return mean, log_variance

    def features(self, points: Tensor, steps: int | None = None) -> Tensor:
        """Features of every step, ``n x W x features``, of latent points ``n x latent``.

        Where ``steps`` are given, those of so many first steps alone.
        """
        if steps is None or steps == self.steps:
            features: Tensor = self.decoder(points)
        else:
            hidden, last, wanted = self.decoder[:-1], self.decoder[-1], steps * self.sizes.features
            assert isinstance(last, nn.Linear)
            features = functional.linear(hidden(points), last.weight[:wanted], last.bias[:wanted])
        return features.view(len(points), -1, self.sizes.features)

    def start(self, points: Tensor) -> Tensor | None:
        """The state of the recurrent network before the first step, for latent points ``n x latent``.

        `None` stands for zeros.
        """
        return None if self.sizes.decoder == 1 else torch.tanh(self.beginning(points))[None]

    def logits(
        self, features: Tensor, contexts: Tensor, previous: Tensor, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits of the symbols of T steps in a row.

        Args:
            features: ``n x T x features``.
            contexts: ``n x T``.
            previous: ``n x T``: the symbol before each step; before the first stands ``symbols + 1``.
            state: What the recurrent network returned for the steps before; at the beginning, what `start` gives.

        Returns:
            Logits, ``n x T x (symbols + 1)``, minus infinity for what the context forbids; and the state.
        """
        if self.sizes.decoder == 1:
            memories, state = self.memory(features + self.previous(previous), state)
            hidden = functional.relu(features + self.recall(memories) + self.context(contexts))
        else:
            memories, state = self.memory(features + self.previous(previous) + self.context(contexts), state)
            hidden = torch.cat([memories, features], dim=-1)
        logits: Tensor = self.output(hidden)
        assert state is not None
        return logits.masked_fill(~self.possible[contexts], -torch.inf), state

    def log_likelihood(self, points: Tensor, rows: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """How well latent points explain rows: the probability with which a decoder that draws each symbol writes them.

        Args:
            points: ``n x latent``.
            rows: ``n x W``, or less wide where nothing but padding is left out.
            contexts: As wide as ``rows``.

        Returns:
            log p(row | point), ``n``, in nats; and whether each symbol is the most likely one given those before it
            (padding always is), as wide as ``rows``.
        """
        previous = torch.cat([rows.new_full((len(rows), 1), self.before), rows[:, :-1]], dim=1)
        logits, _ = self.logits(self.features(points, rows.shape[1]), contexts, previous, self.start(points))
        logits = logits.masked_fill(self._unfinishable(rows), -torch.inf)
        chosen = functional.log_softmax(logits, dim=-1).gather(-1, rows[..., None])[..., 0]
        return chosen.sum(dim=1), logits.argmax(dim=-1) == rows

    def _unfinishable(self, rows: Tensor) -> Tensor:
        """At each step of rows the symbols with which the string could no longer end in time, as the decoder does."""
        change = self.change[rows]
        needed = self.least + change.cumsum(dim=1) - change
        left = self.steps - torch.arange(rows.shape[1], device=rows.device)
        return self.change > (left - 1 - needed)[..., None]


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, 1)) for each entry, in nats: (mean^2 + variance - 1 - log variance) / 2.

    Example:
        >>> gaussian_kl(torch.tensor([0.0, 2.0]), torch.zeros(2))
        tensor([0., 2.])
    """
    return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance)


def sampled_codes(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """Codes mean + std * noise, drawn from the posterior, differentiable in its parameters."""
    return mean + (0.5 * log_variance).exp() * noise


def resolve_device(device: str | torch.device) -> torch.device:
    """A torch device; ``"auto"`` is the GPU where there is one, else the CPU.

    Raises:
        InputError: For a device that torch does not know, or that is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"device {device!r} cannot be used ({reason}); choose auto, cpu or cuda") from error
    return chosen


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Let torch compute in so many threads; `None` leaves them as they are.

    The number is the whole process's, so contexts in several threads take turns. They may be nested.

    Raises:
        InputError: If ``threads`` < 1.
    """
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; expected at least 1")
    if threads is None:
        yield
        return
    with _LOCK:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _perceptron(*widths: int) -> nn.Sequential:
    """Linear layers from each width to the next, with rectifiers between them."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.ReLU(), nn.Linear(before, after)]
    return nn.Sequential(*layers[1:])


def _convolutions(embedding: int, channels: int) -> nn.Sequential:
    """Three layers over windows of symbols; the second and the third halve the length."""
    layers: list[nn.Module] = []
    for inputs, stride in ((embedding, 1), (channels, 2), (channels, 2)):
        layers += [nn.Conv1d(inputs, channels, WINDOW, stride, padding=WINDOW // 2), nn.ReLU()]
    return nn.Sequential(*layers)


def _shortened(steps: int) -> int:
    """How many of ``steps`` positions are left behind the convolutions."""
    return (steps + 3) // 4
