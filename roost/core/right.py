"""The rights that operations need and callers have (decision 0045)."""

from enum import StrEnum, auto


class Right(StrEnum):
    """What a caller needs for an operation; `identity/rights.py` says which credential has it."""

    NONE = auto()
    """Nothing: it is public, the request has a proof of its own, or any valid credential counts."""
    READ = auto()
    WRITE = auto()
    EXECUTE = auto()
    """Run commands or models: it costs resources or money, and does whatever the agent can."""
    CREDENTIAL = auto()
    """Get a credential, let a device in, or copy state that contains credentials."""
    MANAGE = auto()
    """Delete agents, manage keys and sessions, see the deployment."""
