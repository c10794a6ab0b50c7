"""The experiments of the BOSS paper, repeated: ``seqopt bench boss``.

`tasks` holds what is optimised, `methods` how, `published` what the paper reports, `runs` does and stores a run,
`scores` turns runs into numbers, `genes` folds all genes of a short protein, `molecules` draws the candidates of each
seed, `report` makes the tables, `plots` the curves, and `command` is the command.

References:
    Moss, H. B., Leslie, D. S., Beck, D., Gonzalez, J., Rayson, P. (2020). BOSS: Bayesian optimization over string
        spaces. NeurIPS.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, sections 4.6.1 to 4.6.4.
"""

from seqopt.bench.boss.command import main

__all__ = ["main"]
