"""Conformance suites: what seqopt relies on in parts that users write, as tests to inherit.

A suite is a class of pytest tests. Inherit it in a test file, and override its fixtures::

    from seqopt.testing.executors import ExecutorConformance

    class TestMyExecutor(ExecutorConformance):
        @pytest.fixture
        def executor(self):
            with MyExecutor() as executor:
                yield executor

The suites are modules of their own, because they need pytest, which seqopt itself does not:

- `seqopt.testing.objectives` and `seqopt.testing.executors`: what is evaluated, and where;
- `seqopt.testing.spaces`: spaces, pools, and spaces with moves;
- `seqopt.testing.surrogates`, with a suite for each capability, and `seqopt.testing.posteriors`;
- `seqopt.testing.acquisitions` and `seqopt.testing.scorers`: what a search maximises;
- `seqopt.testing.strategies`: who decides.

`seqopt.testing.running.failures` runs a suite in a notebook. Suites can be combined: a surrogate that offers joint
posteriors and pools inherits both suites in one class.
"""
