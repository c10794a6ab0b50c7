"""The experiments of the thesis on functions of the unit cube: ``seqopt bench euclid``.

`functions` holds what is maximised, `plates` and `facility` what is seen through plates only, `kernels` and `models`
the Gaussian processes of BoTorch, and `adaptor` shows them to the acquisition functions of seqopt. `search` maximises
these over the cube, `ratio` lets BORE and LFBO search it, `heuristics` are batch heuristics that need distances.
`boxes` is a model that averages over its parameters, which `adaptive` searches with; `fourier` draws functions,
`regularisers` hold back a search that has no box, and `further_functions` are those of the papers on these. `methods`
and `tasks` say what is compared, `published` holds what the thesis prints, `runs` does and stores a run, `report` makes
the tables, and `command` is the command.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster University,
        sections 3.5, 5.7.1, 5.7.2, 6.6.1 and 6.6.4.
"""

from seqopt.bench.euclid.command import main

__all__ = ["main"]
