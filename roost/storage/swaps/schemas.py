"""Shapes of hot swaps."""

from typing import Annotated

from pydantic import AliasChoices, Field

from roost.storage.swaps.model import HotSwap
from roost.web.schemas import ApiSchema, Moment, StorageSchema


class PutSwapRequest(StorageSchema):
    """Clients and documents of the reference service write the field in both ways."""

    swap_cid: Annotated[str, Field(max_length=512, validation_alias=AliasChoices("swap_cid", "swapCid"))]


class SwapRecord(StorageSchema):
    """`mapped_cid` is null from when the CID itself was served again."""

    mapped_cid: str | None
    created_at: Moment


class LegacySwapRecord(ApiSchema):
    """The same in the words of older clients."""

    mapped_cid: str | None
    created_at: Moment


def record(swap: HotSwap) -> SwapRecord:
    return SwapRecord(mapped_cid=swap.mapped_cid, created_at=swap.created_at)


def old_record(swap: HotSwap) -> LegacySwapRecord:
    return LegacySwapRecord(mapped_cid=swap.mapped_cid, created_at=swap.created_at)
