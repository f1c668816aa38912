"""Count the values of a JSON body while it streams in.

Parsed, a small body of many tiny values takes up hundreds of times its size in memory, and blocks the event loop.
"""

MOST = 100_000
"""Of any body that is read whole: they are read in less than a tenth of a second, however they are nested."""


class JsonTokenCounter:
    """Commas and opening brackets that are in no text. Of what is not JSON the count means nothing."""

    def __init__(self) -> None:
        self.count = 0
        self._is_text = False
        self._is_utf8 = True
        self._escape = b""

    def add(self, piece: bytes) -> None:
        """Count the values in the next bytes."""
        data = self._escape + piece
        self._escape = (
            b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        )  # of a sign that is in the next piece
        plain = data.removesuffix(self._escape).replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = plain.split(b'"')
        # UTF-16 and UTF-32 have these signs as parts of others; what is written in UTF-8 has no NUL
        self._is_utf8 &= b"\0" not in data
        outside = b"".join(parts[self._is_text :: 2]) if self._is_utf8 else data
        self._is_text ^= len(parts) % 2 == 0
        self.count += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
