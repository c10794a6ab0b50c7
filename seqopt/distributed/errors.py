"""What can go wrong with a cluster, and what workers say of a shard that they do not have."""

from __future__ import annotations

from seqopt.errors import SeqoptError


class ClusterError(SeqoptError):
    """A scheduler that does not answer, or workers that cannot do what they are asked for.

    Nothing that was measured is lost: what was being chosen is chosen again when it is asked for again.
    """


class DamagedShardError(ClusterError):
    """A shard that does not match its checksum where it was prepared."""


class MissingShardError(SeqoptError):
    """A worker has no whole copy of a shard, and cannot read it where it was prepared."""
