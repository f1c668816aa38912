"""Wallets as another implementation has them, for tests to sign with.

Something that it imports raises Python's recursion limit for the whole process, beyond what a C stack holds: deeply
nested JSON would then end the tests instead of being refused. It is set back.
"""

import sys

_LIMIT = sys.getrecursionlimit()

from eth_account import Account  # noqa: E402 - between the two
from eth_account.messages import encode_defunct, encode_typed_data  # noqa: E402
from eth_account.signers.local import LocalAccount  # noqa: E402

sys.setrecursionlimit(_LIMIT)

__all__ = ["Account", "LocalAccount", "encode_defunct", "encode_typed_data"]
