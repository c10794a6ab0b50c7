"""The parts of `seqopt bench kernel`: each measures one thing and returns what is stored as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from seqopt.bench.kernel import gauche, memory, yardstick
from seqopt.bench.kernel.settings import Settings
from seqopt.bench.kernel.timing import (
    Case,
    Row,
    affordable,
    cross_case,
    device_case,
    encoded_zinc,
    engines,
    gram_case,
    interleaved,
    random_strings,
    variants,
    zinc,
)
from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels.engines import order_sums

Result = dict[str, Any]
"""``rows``, and ``unavailable``, the reason, where what was to be measured is not there: it is then not finished."""

PRECISIONS = ("float32", "float64")
CHECKED = 12
"""Strings on which results are compared with those of the reference engine."""

TOLERANCE = {"float32": 1e-4, "float64": 1e-10}
LARGEST_CACHE = 2**40
"""A memory budget that is never reached."""

DNA, PROTEIN = 4, 20

LIBRARIES = (
    ("variants of a protein of 290 residues, 1 to 4 substitutions", 290, (1, 4), PROTEIN),
    ("variants of a protein of 238 residues, 1 to 8 substitutions", 238, (1, 8), PROTEIN),
    ("variants of a gene of 720 letters, 1 to 6 substitutions", 720, (1, 6), DNA),
)
"""Libraries of variants: name, length, substitutions and symbols."""


def compare_with_yardstick(settings: Settings) -> Result:
    """The `cpu` engine and the hand-vectorised loop, after both were checked against `reference`."""
    try:
        loop = yardstick.load()
    except yardstick.NoCompilerError as error:
        return {"rows": [], "unavailable": str(error)}
    strings = encoded_zinc(settings.gram, settings.seed)
    differences = {precision: _check(loop, strings, settings.order, precision) for precision in PRECISIONS}
    cases = [
        gram_case(engine, strings, settings.order, derivative=derivative, dtype=precision, threads=threads)
        for precision in PRECISIONS
        for derivative in (False, True)
        for threads in settings.threads
        for engine in ("cpu", "yardstick")
    ]
    return {
        "rows": interleaved(cases, settings.rounds),
        "differences_from_reference": differences,
        "compiler": loop.compiler,
        "flags": list(yardstick.FLAGS),
        "instructions": loop.instructions,
    }


def _check(loop: yardstick.Yardstick, strings: EncodedStrings, order: int, precision: str) -> float:
    """The largest difference from the reference, relative to the largest value; too large a one stops the benchmark."""
    few = strings.take(slice(0, CHECKED))
    weights = 0.8 ** (2.0 * np.arange(1, order + 1))
    expected = order_sums(few, None, 0.5, order, derivative=True, weights=weights, engine="reference")
    found = 0.0
    for actual in (
        loop.sums(loop.pack(few), None, 0.5, weights, derivative=True, dtype=precision),
        order_sums(few, None, 0.5, order, derivative=True, weights=weights, dtype=precision, engine="cpu"),
    ):
        for values, oracle in zip(actual, expected, strict=True):
            if values is not None and oracle is not None:
                found = max(found, float(np.abs(values - oracle).max() / np.abs(oracle).max()))
    if not found <= TOLERANCE[precision]:
        raise RuntimeError(f"results in {precision} differ from those of the reference engine by {found:.2g}")
    return found


def compare_with_gauche(settings: Settings) -> Result:
    """`SubsequenceKernel`, nothing cached, and GAUCHE's kernel, after their values were compared."""
    version = gauche.installed()
    if version is None:
        return {"rows": [], "unavailable": gauche.HOW_TO_INSTALL}
    import torch

    rows: list[Row] = []
    differences = {}
    for precision in PRECISIONS:
        many = encoded_zinc(settings.gauche_many, settings.seed)
        for gradients, count in zip((False, True), settings.gauche, strict=True):
            few = many.take(slice(0, count))
            tokens = few.to_tensor(int(few.lengths.max())).to(getattr(torch, precision))
            if gradients:
                differences[precision] = gauche.largest_differences(tokens, settings.order)
            cases = [
                gauche.their_case(tokens, settings.order, gradients),
                gauche.our_case(tokens, settings.order, gradients),
                gauche.our_case(many.to_tensor().to(tokens), settings.order, gradients),
            ]
            rows += interleaved(cases, settings.rounds)
    job = {"kernel": "gauche", "strings": settings.gauche_memory, "order": settings.order, "seed": settings.seed}
    return {"rows": rows, "differences": differences, "version": version, "memory": job | memory.measure(job)}


def peak_memory(settings: Settings) -> Result:
    """Peak memory of a Gram matrix with gradients, for three memory budgets of the kernel's cache."""
    jobs = [
        {
            "kernel": "seqopt",
            "cache": cache,
            "cache_bytes": size,
            "strings": settings.memory,
            "order": settings.order,
            "seed": settings.seed,
        }
        for cache, size in (("everything", LARGEST_CACHE), ("default", None), ("nothing", 0))
    ]
    return {"rows": [job | memory.measure(job) for job in jobs]}


def sweep_counts(settings: Settings) -> Result:
    """Gram matrices of more and more ZINC SMILES."""
    return _sweep(
        settings,
        [(encoded_zinc(count, settings.seed), settings.order, {"count": count}) for count in settings.counts],
    )


def sweep_lengths(settings: Settings) -> Result:
    """Gram matrices of longer and longer random strings over the letters of DNA and of proteins."""
    return _sweep(
        settings,
        [
            (
                random_strings(settings.length_strings, length, symbols, settings.seed),
                settings.order,
                {"kind": kind, "length": length},
            )
            for kind, symbols in (("DNA", DNA), ("protein", PROTEIN))
            for length in settings.lengths
        ],
    )


def sweep_orders(settings: Settings) -> Result:
    """Gram matrices of ZINC SMILES for longer and longer sub-sequences."""
    strings = encoded_zinc(settings.order_strings, settings.seed)
    return _sweep(settings, [(strings, order, {}) for order in settings.orders])


def sweep_alphabets(settings: Settings) -> Result:
    """Gram matrices of random strings over more and more symbols."""
    size = settings.alphabet_strings, settings.alphabet_length
    return _sweep(
        settings,
        [
            (random_strings(*size, symbols, settings.seed), settings.order, {"alphabet": symbols})
            for symbols in settings.alphabets
        ],
    )


def sweep_partitions(settings: Settings) -> Result:
    """Gram matrices of DNA strings cut into more and more parts, `cpu` engine."""
    cases = [
        gram_case(
            "cpu",
            random_strings(settings.partition_strings, length, DNA, settings.seed),
            settings.order,
            derivative=derivative,
            dtype="float64",
            threads=max(settings.threads),
            partitions=partitions,
            length=length,
        )
        for length in settings.partition_lengths
        for derivative in (False, True)
        for partitions in settings.partitions
    ]
    return {"rows": interleaved(cases, settings.sweep_rounds)}


def _sweep(settings: Settings, points: list[tuple[EncodedStrings, int, Row]]) -> Result:
    cases = [
        gram_case(engine, some, order, derivative=derivative, dtype="float64", threads=max(settings.threads), **facts)
        for strings, order, facts in points
        for derivative in (False, True)
        for engine in engines()
        if (some := affordable(engine, strings, order)) is not None
    ]
    return {"rows": interleaved(cases, settings.sweep_rounds)}


def compare_features(settings: Settings) -> Result:
    """The `features` engine and the `cpu` engine on many DNA strings."""
    strings = random_strings(settings.features, settings.features_length, DNA, settings.seed)
    cases = [
        gram_case(
            engine,
            strings,
            settings.order,
            derivative=derivative,
            dtype="float64",
            threads=max(settings.threads),
        )
        for derivative in (False, True)
        for engine in ("features", "cpu")
    ]
    rows = interleaved(cases, settings.sweep_rounds)
    reasons = [row["skipped"] for row in rows if "skipped" in row]
    return {"rows": rows, "unavailable": reasons[0]} if reasons else {"rows": rows}


def compare_sharing(settings: Settings) -> Result:
    """The `cpu` engine with and without computing prefixes and endings that strings share once.

    The first call of each case plans; the plan is then kept with the strings, as it is in a search.
    """
    from seqopt.kernels.engines import cpu

    threads = max(settings.threads)
    pool = encoded_zinc(max(settings.pools) + settings.training, settings.seed)
    training = pool.take(slice(max(settings.pools), None))
    found: list[tuple[str, EncodedStrings, EncodedStrings | None]] = [
        (f"pool of {count:,} ZINC SMILES, {settings.training} training strings", pool.take(slice(0, count)), training)
        for count in settings.pools
    ]
    for name, length, mutations, symbols in LIBRARIES:
        library = variants(settings.variants, length, mutations, symbols, settings.seed)
        found.append((f"Gram matrix of {settings.variants} {name}", library, None))
    unrelated = random_strings(settings.alphabet_strings, settings.alphabet_length, PROTEIN, settings.seed)
    found.append((f"Gram matrix of {len(unrelated)} random strings of {unrelated.width} residues", unrelated, None))
    cases: list[Case] = []
    for what, a, b in found:
        for derivative in (False, True):
            left = round(cpu.saving(a, b, settings.order, derivative), 3)
            for engine in ("pairs", "cpu"):
                facts: Row = {"what": what, "rows_left": left}
                options: Row = {"derivative": derivative, "threads": threads}
                if b is None:
                    cases.append(gram_case(engine, a, settings.order, dtype="float64", **options, **facts))
                else:
                    cases.append(cross_case(engine, a, b, settings.order, **options, **facts))
    return {"rows": interleaved(cases, settings.sweep_rounds)}


def compare_gpu(settings: Settings) -> Result:
    """The `cuda` engine and the `cpu` engine: Gram matrices, and columns of a pool, with results in the host's memory.

    Those of the `cuda` engine are compared with those of the `cpu` engine on a Gram matrix before. Rows of
    engine ``device`` are of strings and results that stay in the memory of the GPU.
    """
    from seqopt.kernels.engines import check_engine

    try:
        check_engine("cuda")
    except InputError as error:
        return {"rows": [], "unavailable": str(error)}
    threads = max(settings.threads)
    pool, training = settings.gpu_pool
    molecules = encoded_zinc(max(pool + training, *settings.gpu_counts), settings.seed)
    found: list[tuple[str, EncodedStrings, EncodedStrings | None]] = [
        (f"Gram matrix of {count:,} ZINC SMILES", molecules.take(slice(0, count)), None)
        for count in settings.gpu_counts
    ]
    found.append(
        (
            f"{pool:,} ZINC SMILES with {training} others",
            molecules.take(slice(training, training + pool)),
            molecules.take(slice(0, training)),
        )
    )
    for length in settings.gpu_lengths:
        strings = random_strings(settings.gpu_strings, length, DNA, settings.seed)
        found.append((f"Gram matrix of {len(strings)} DNA strings of {length:,} letters", strings, None))
    differences = {
        precision: _gpu_difference(found[len(settings.gpu_counts) // 2][1], settings.order, precision)
        for precision in PRECISIONS
    }
    cases: list[Case] = []
    for what, a, b in found:
        for precision in PRECISIONS:
            for derivative in (False, True):
                options: Row = {"derivative": derivative, "threads": threads, "dtype": precision, "what": what}
                cells = float(a.lengths.sum()) * float((a if b is None else b).lengths.sum())
                options["cells"] = cells / 2 if b is None else cells
                for engine in ("cpu", "cuda"):
                    if b is None:
                        cases.append(gram_case(engine, a, settings.order, **options))
                    else:
                        cases.append(cross_case(engine, a, b, settings.order, **options))
                cases.append(device_case(a, b, settings.order, cases[-1]))
    return {"rows": interleaved(cases, settings.sweep_rounds), "differences_from_cpu": differences}


def compare_gpu_on_few(settings: Settings) -> Result:
    """As `compare_gpu`, of so few strings, and so long ones, that most of the GPU has nothing to do."""
    from seqopt.kernels.engines import check_engine

    try:
        check_engine("cuda")
    except InputError as error:
        return {"rows": [], "unavailable": str(error)}
    few, more = max(2, settings.gpu_strings // 32), max(3, settings.gpu_strings // 8)
    longest = settings.gpu_lengths[-1]
    cases: list[Case] = []
    for length in (longest, 3 * longest):
        strings = random_strings(more, length, DNA, settings.seed)
        proposed = random_strings(3 * more, length, DNA, settings.seed)
        found = [(strings.take(slice(0, count)), None) for count in (few, more)]
        for a, b in [*found, (proposed, strings.take(slice(0, few)))]:
            for derivative in (False, True) if b is None else (False,):
                for engine, threads in (*(("cpu", count) for count in settings.threads), ("cuda", 1)):
                    options: Row = {"derivative": derivative, "threads": threads, "dtype": "float64"}
                    if b is None:
                        cases.append(gram_case(engine, a, settings.order, **options))
                    else:
                        cases.append(cross_case(engine, a, b, settings.order, **options))
    return {"rows": interleaved(cases, settings.sweep_rounds)}


def _gpu_difference(strings: EncodedStrings, order: int, precision: str) -> float:
    """As `_check`, of the `cuda` engine from the `cpu` engine in double precision."""
    expected = order_sums(strings, None, 0.5, order, derivative=True, engine="cpu")
    actual = order_sums(strings, None, 0.5, order, derivative=True, dtype=precision, engine="cuda")
    found = 0.0
    for values, oracle in zip(actual, expected, strict=True):
        assert values is not None
        assert oracle is not None
        for plane, expected_plane in zip(values, oracle, strict=True):
            scale = float(np.abs(expected_plane).max()) or 1.0
            found = max(found, float(np.abs(plane - expected_plane).max()) / scale)
    if not found <= TOLERANCE[precision]:
        raise RuntimeError(f"results in {precision} differ from those of the cpu engine by {found:.2g}")
    return found


def fit_models(settings: Settings) -> Result:
    """Marginal-likelihood fits to penalised logP: a full one, and one with and without interpolation."""
    from seqopt.objectives.molecules import penalized_logp

    largest = max(settings.fit[0], settings.fit_interpolated[0])
    strings = zinc(largest, settings.seed)
    values = penalized_logp(strings)
    jobs = [(*settings.fit, True), (*settings.fit_interpolated, True), (*settings.fit_interpolated, False)]
    for _, _, interpolate in jobs:
        _fit(strings[:12], values[:12], 1, interpolate, 0)  # loads and compiles everything
    rows: list[Row] = [
        {"strings": count, "restarts": restarts, "interpolate": interpolate, "seconds": [], "log_posterior": []}
        for count, restarts, interpolate in jobs
    ]
    for seed in range(settings.sweep_rounds):
        for row in rows:
            count = row["strings"]
            seconds, reached = _fit(strings[:count], values[:count], row["restarts"], row["interpolate"], seed)
            row["seconds"].append(seconds)
            row["log_posterior"].append(reached)
    return {"rows": rows}


def _fit(
    strings: list[str],
    values: Any,
    restarts: int,
    interpolate: bool,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Seconds of a fit, and the log marginal likelihood plus log priors that it reached."""
    import gpytorch
    import torch

    from seqopt.models import StringGP

    surrogate = StringGP(restarts=restarts, interpolate=interpolate)
    started = clock()
    surrogate.fit(strings, values, rng=np.random.default_rng(seed))
    seconds = clock() - started
    model = surrogate.model
    model.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    with torch.no_grad():
        reached = objective(model(*model.train_inputs), model.train_targets)
    return seconds, float(reached) * len(strings)


def fit_by_nodes(settings: Settings) -> Result:
    """Fits to few strings with and without interpolation in the gap decay, one thread, and what nodes they take.

    Values are a sum over positions of a normally distributed effect of each symbol, with a tenth of noise.
    """
    import torch

    from seqopt.kernels import SubsequenceKernel
    from seqopt.kernels.interpolation import InterpolatedGram

    name, length, mutations, symbols = LIBRARIES[0]
    found = [
        (name, variants(settings.variants, length, mutations, symbols, settings.seed)),
        ("random strings of 60 residues", random_strings(settings.nodes, 60, PROTEIN, settings.seed)),
        ("ZINC SMILES", encoded_zinc(settings.nodes, settings.seed)),
    ]
    rows: list[Row] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for what, encoded in found:
            strings, values = _written(encoded, settings.seed)
            kernel = SubsequenceKernel(settings.order)
            with kernel.interpolating(encoded.to_tensor()):
                gram = kernel._interpolated
            assert isinstance(gram, InterpolatedGram)
            both: list[Row] = [
                {"what": what, "strings": len(strings), "nodes": nodes, "seconds": [], "log_posterior": []}
                for nodes in (gram.nodes.count, None)
            ]
            for seed in range(-1, settings.rounds):
                for row in both:
                    seconds, reached = _fit(
                        strings, values, 2, row["nodes"] is not None, max(0, seed), time.process_time
                    )
                    if seed >= 0:  # the round before loads what is compiled
                        row["seconds"].append(seconds)
                        row["log_posterior"].append(reached)
            rows += both
    finally:
        torch.set_num_threads(threads)
    return {"rows": rows}


def _written(encoded: EncodedStrings, seed: int) -> tuple[list[str], Any]:
    """Strings of one letter a symbol, and values."""
    rng = np.random.default_rng([seed, len(encoded)])
    effects = rng.standard_normal((encoded.width, int(encoded.tokens.max()) + 1))
    effects[:, 0] = 0.0
    values = effects[np.arange(encoded.width), encoded.tokens].sum(axis=1)
    values += 0.1 * values.std() * rng.standard_normal(len(values))
    # A letter for each number, beyond those that mean something in a notation.
    strings = ["".join(chr(0x4E00 + token) for token in row[row > 0]) for row in encoded.tokens.astype(int)]
    return strings, values


SECTIONS: dict[str, Callable[[Settings], Result]] = {
    "yardstick": compare_with_yardstick,
    "gauche": compare_with_gauche,
    "memory": peak_memory,
    "count": sweep_counts,
    "length": sweep_lengths,
    "order": sweep_orders,
    "alphabet": sweep_alphabets,
    "partitions": sweep_partitions,
    "features": compare_features,
    "sharing": compare_sharing,
    "gpu": compare_gpu,
    "gpu-few": compare_gpu_on_few,
    "fit": fit_models,
    "nodes": fit_by_nodes,
}
"""All sections, in the order in which they are measured."""
