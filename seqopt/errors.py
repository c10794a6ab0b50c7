"""Errors that seqopt raises on purpose.

Every message says what was wrong, where (file, line, value), and what to do about it. All of them derive from
`SeqoptError`, so a caller can tell an explained refusal from a defect; those caused by a wrong argument are also
`ValueError`, as Python users expect.
"""


class SeqoptError(Exception):
    """Base class of every error that seqopt explains to its user."""


class InputError(SeqoptError, ValueError):
    """A file, column, string or option that cannot be used as it is."""


class ExhaustedError(InputError):
    """Nothing is left to suggest: every string of the space has been suggested already."""


class IntractableError(InputError):
    """An exact answer that is there, and takes more memory or time than is given to it: search instead."""


class ObjectiveError(SeqoptError):
    """The objective could not be loaded, or failed in a way that makes continuing pointless."""


class StoppedRunError(ObjectiveError):
    """A run was stopped because its objective does not work; everything measured is kept, and it can be resumed.

    Where the objective raised an exception, its traceback is a note of this error (`BaseException.add_note`).
    """


class RunFolderError(SeqoptError):
    """A run folder that cannot be written, resumed or overwritten safely."""


class ModelError(SeqoptError):
    """A surrogate that cannot be fitted to, or evaluated on, what it was given."""
