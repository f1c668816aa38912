"""Page tokens: the position of a page's last row in a list by creation time."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, Self, TypeVar

from roost.core.problem import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class InvalidPageToken(InvalidInput):
    message = "Invalid pageToken"
    field = "pageToken"


class CreatedRow(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...


R = TypeVar("R", bound=CreatedRow)


@dataclass(frozen=True)
class PageCursor:
    """Position of the last row of a page in a list by creation time."""

    created_at: datetime
    id: str

    @classmethod
    def parse(cls, token: str) -> Self:
        """Parse a token. Raises InvalidPageToken."""
        try:
            micros, _, row_id = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
            if "\0" in row_id:
                raise InvalidPageToken
            return cls(_EPOCH + int(micros) * _MICROSECOND, row_id[:36])
        except (ValueError, OverflowError, binascii.Error):
            raise InvalidPageToken from None

    def token(self) -> str:
        micros = (self.created_at - _EPOCH) // _MICROSECOND
        return base64.urlsafe_b64encode(f"{micros}:{self.id}".encode()).decode()


def split_page(rows: Sequence[R], limit: int) -> tuple[Sequence[R], str | None]:
    """Split `limit + 1` queried rows into a page and the token of the next page, if there is one."""
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], PageCursor(last.created_at, last.id).token()
