"""Shapes of membership, as older clients have them."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.storage.unixfs.cid import Cid
from roost.web.schemas import StorageSchema

_AT_ONCE = 1000


class CidListRequest(StorageSchema):
    cids: Annotated[Sequence[Annotated[str, Field(max_length=512)]], Field(min_length=1, max_length=_AT_ONCE)]

    def parsed(self) -> Sequence[Cid]:
        """Raises InvalidCid."""
        return [Cid.parse(cid) for cid in self.cids]
