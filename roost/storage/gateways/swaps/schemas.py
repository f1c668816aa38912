"""Shapes of hot swaps."""

from typing import Annotated

from pydantic import AliasChoices, Field

from roost.web.schemas import Moment, StorageSchema


class PutSwapRequest(StorageSchema):
    """`pinata-web3` sends `swapCid`."""

    swap_cid: Annotated[str, Field(max_length=512, validation_alias=AliasChoices("swap_cid", "swapCid"))]


class SwapRecord(StorageSchema):
    """`mapped_cid` is null if the swap ended."""

    mapped_cid: str | None
    created_at: Moment
