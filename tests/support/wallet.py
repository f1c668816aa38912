"""Wallets of another implementation, which sign messages in tests.

One of the imports raises Python's recursion limit for the whole process beyond the C stack, so that deeply nested JSON
would crash the tests instead of being refused. The limit is restored.
"""

import sys

_LIMIT = min(sys.getrecursionlimit(), 1000)  # Python's default, which another import may have raised before

from eth_account import Account  # noqa: E402 - between the two
from eth_account.messages import encode_defunct, encode_typed_data  # noqa: E402 - as above
from eth_account.signers.local import LocalAccount  # noqa: E402 - as above

sys.setrecursionlimit(_LIMIT)

__all__ = ["Account", "LocalAccount", "encode_defunct", "encode_typed_data"]
