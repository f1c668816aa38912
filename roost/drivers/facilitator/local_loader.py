"""Load the facilitator with a key, whose libraries are optional and take seconds to import."""

import importlib.util
import sys
from typing import TYPE_CHECKING

from roost.core.problem import ServiceUnavailable
from roost.core.sensitive import Sensitive

if TYPE_CHECKING:
    from roost.drivers.facilitator.local import LocalFacilitator


class FacilitatorNotInstalled(ServiceUnavailable):
    message = "The libraries of the facilitator are not installed; run `python3 scripts/setup.py facilitator`"


def load_local_facilitator(key: Sensitive[str], rpc_url: str) -> "LocalFacilitator":
    """Connect to the chain behind an RPC address.

    Raises FacilitatorNotInstalled, FacilitatorUnavailable, and FacilitatorFailed for a malformed key.
    """
    if importlib.util.find_spec("web3") is None:
        raise FacilitatorNotInstalled
    limit = sys.getrecursionlimit()
    try:
        from roost.drivers.facilitator.local import LocalFacilitator
    finally:  # web3's libraries raise it beyond the stack: deeply nested JSON would end the process
        sys.setrecursionlimit(limit)
    return LocalFacilitator(key, rpc_url)
