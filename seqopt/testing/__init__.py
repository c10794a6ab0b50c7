"""Conformance suites: what seqopt relies on in parts that users write, as tests to inherit.

A suite is a class of pytest tests. Inherit it in a test file, and override its fixtures::

    from seqopt.testing.executors import ExecutorConformance

    class TestMyExecutor(ExecutorConformance):
        @pytest.fixture
        def executor(self):
            with MyExecutor() as executor:
                yield executor

The suites are modules of their own, because they need pytest, which seqopt itself does not: `seqopt.testing.executors`,
`seqopt.testing.objectives`.
"""
