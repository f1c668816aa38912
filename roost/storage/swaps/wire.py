"""Shapes of hot swaps."""

from typing import Annotated

from pydantic import AliasChoices, Field

from roost.storage.swaps.model import Swap
from roost.web.wire import V3, Moment, Wire


class PutSwap(V3):
    """Clients and documents of the reference service write the field in both ways."""

    swap_cid: Annotated[str, Field(max_length=512, validation_alias=AliasChoices("swap_cid", "swapCid"))]


class SwapRecord(V3):
    """`mapped_cid` is null from when the CID itself was served again."""

    mapped_cid: str | None
    created_at: Moment


class OldSwapRecord(Wire):
    """The same in the words of older clients."""

    mapped_cid: str | None
    created_at: Moment


def record(swap: Swap) -> SwapRecord:
    return SwapRecord(mapped_cid=swap.mapped_cid, created_at=swap.created_at)


def old_record(swap: Swap) -> OldSwapRecord:
    return OldSwapRecord(mapped_cid=swap.mapped_cid, created_at=swap.created_at)
