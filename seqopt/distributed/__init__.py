"""Pools that are searched by the workers of a Dask cluster: `spread_pool`, `connect`.

Needs ``pip install "seqopt[dask]"``. Nothing here is imported unless a scheduler or a client is given.
"""

from seqopt.distributed.connection import connect, connected
from seqopt.distributed.errors import ClusterError, DamagedShardError
from seqopt.distributed.spreading import DaskSpread, spread_pool

__all__ = ["ClusterError", "DamagedShardError", "DaskSpread", "connect", "connected", "spread_pool"]
