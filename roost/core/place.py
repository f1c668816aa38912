"""Where a page of a list ended, as a token that a client hands back for the next one."""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from roost.core.problem import Kind, Problem


class InvalidPage(Problem):
    kind = Kind.INVALID
    message = "Invalid pageToken"


@dataclass(frozen=True)
class Place:
    """The last row of a page, in a list by creation."""

    created_at: datetime
    id: str

    @classmethod
    def parse(cls, token: str) -> Self:
        """Raises InvalidPage."""
        try:
            micros, _, row_id = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
            if "\0" in row_id:
                raise InvalidPage
            return cls(datetime.fromtimestamp(int(micros) / 1_000_000, UTC), row_id[:36])
        except (ValueError, OverflowError, OSError, binascii.Error):
            raise InvalidPage from None

    def token(self) -> str:
        micros = round(self.created_at.timestamp() * 1_000_000)
        return base64.urlsafe_b64encode(f"{micros}:{self.id}".encode()).decode()
