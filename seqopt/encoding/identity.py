"""Kinds of strings and their keys, as the rooms that encode strings see them: see `seqopt.identity`."""

from seqopt.identity import KINDS, identity_keys, recognize_kind

__all__ = ["KINDS", "identity_keys", "recognize_kind"]
