"""What is asked and told: queries, outcomes, and the table of everything measured."""

from seqopt.data.contexts import Contexts, written
from seqopt.data.observations import CENSORED, COLUMNS, Censoring, Observation, Observations, Status, observation_table
from seqopt.data.outcome import Direction, Outcome, Role
from seqopt.data.predictions import (
    Predictions,
    central,
    fold_range,
    interval,
    negative_log_of,
    shown_interval,
    shown_number,
)
from seqopt.data.query import Context, ContextValue, Item, Query, as_context, context_of, key_of, targets_of
from seqopt.data.room import Room
from seqopt.data.table import Data, Measured
from seqopt.data.transforms import (
    DEFAULT_TRANSFORM,
    TRANSFORMS,
    Identity,
    LearnedTransform,
    Log10,
    NormalScores,
    Transform,
    Winsorised,
    YeoJohnson,
    resolve_transform,
)
from seqopt.data.yes_no import YES_NO, YesNo, probability_moments, read_answer, told_answer

__all__ = [
    "CENSORED",
    "COLUMNS",
    "DEFAULT_TRANSFORM",
    "TRANSFORMS",
    "YES_NO",
    "Censoring",
    "Context",
    "ContextValue",
    "Contexts",
    "Data",
    "Direction",
    "Identity",
    "Item",
    "LearnedTransform",
    "Log10",
    "Measured",
    "NormalScores",
    "Observation",
    "Observations",
    "Outcome",
    "Predictions",
    "Query",
    "Role",
    "Room",
    "Status",
    "Transform",
    "Winsorised",
    "YeoJohnson",
    "YesNo",
    "as_context",
    "central",
    "context_of",
    "fold_range",
    "interval",
    "key_of",
    "negative_log_of",
    "observation_table",
    "probability_moments",
    "read_answer",
    "resolve_transform",
    "shown_interval",
    "shown_number",
    "targets_of",
    "told_answer",
    "written",
]
