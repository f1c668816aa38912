"""Errors of snapshots: the contract's, and others that it does not name."""

from roost.core.problem import InvalidInput, NotFound, Problem


class InvalidSnapshotCid(InvalidInput):
    message = "Invalid snapshot CID"
    field = "snapshotCid"


class SnapshotNotFound(NotFound):
    """The CID is not in the agent's history."""

    message = "Snapshot not found"


class StateNotFound(NotFound):
    """The snapshot has a workspace only."""

    message = "The snapshot has no state"


class SyncFailed(Problem):
    message = "Sync failed"


class ResetFailed(Problem):
    message = "Reset failed"
