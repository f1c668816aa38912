"""Text that grows piece by piece, within a limit."""

from roost.drivers.text_extractor.contract import TEXT_LIMIT
from roost.drivers.text_extractor.refusal import DocumentRefused, RefusalReason

_LIMIT = 2 * TEXT_LIMIT
"""Normalization removes blank lines and spaces, so that a text of this length may become short enough."""


class TextBuilder:
    """Text in pieces; one that becomes too long is refused at once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: str) -> None:
        self._length += len(piece)
        if self._length > _LIMIT:
            raise DocumentRefused(RefusalReason.TEXT_SIZE)
        self._pieces.append(piece)

    def build(self) -> str:
        return "".join(self._pieces)
