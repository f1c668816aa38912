"""Shapes of wallet signatures (contract, Signature)."""

from typing import Annotated

from pydantic import Field

from roost.web.wire import V3


class AddSignature(V3):
    signature: Annotated[str, Field(max_length=1024)]
    address: Annotated[str, Field(max_length=128)]


class SignatureRecord(V3):
    cid: str
    signature: str
