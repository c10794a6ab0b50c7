"""Pools that are prepared and searched by the workers of a Dask cluster: `prepare_by`, `spread_pool`, `connect`.

Needs ``pip install "seqopt[dask]"``. Nothing here is imported unless a scheduler or a client is given.
"""

from seqopt.distributed.connection import connect, connected
from seqopt.distributed.errors import ClusterError, DamagedShardError
from seqopt.distributed.spreading import DaskSpread, prepare_by, spread_pool

__all__ = ["ClusterError", "DamagedShardError", "DaskSpread", "connect", "connected", "prepare_by", "spread_pool"]
