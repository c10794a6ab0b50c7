"""Settings of learners and networks as strings: ``seqopt bench configurations``.

Every configuration of these tables has been trained several times (`seqopt.datasets.load_configurations`): networks of
NASBench-201, six operations of five kinds, and networks of two layers of HPOLib, nine settings. `tasks` says what is
searched, `baselines` holds what density ratios are compared with (regularised evolution and Optuna's TPE), `methods`
all that is compared, `runs` does and stores a run, `report` makes tables and curves, and `command` is the command.

References:
    Tiao, L. C. et al. (2021). BORE: Bayesian optimization by density-ratio estimation. ICML, section 5.
    Tiao, L. C. (2023). Probabilistic machine learning in the age of deep learning. PhD thesis, section 5.5.
"""

from seqopt.bench.configurations.command import main

__all__ = ["main"]
