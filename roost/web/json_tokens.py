"""Count the values of a JSON body while it streams in.

Parsed, a small body of many tiny values takes up hundreds of times its size in memory, and blocks the event loop.
"""

VALUES_LIMIT = 100_000
"""Maximum values of a parsed body, which takes less than a tenth of a second however they are nested."""


class JsonTokenCounter:
    """Counter of commas and opening brackets outside of strings; meaningless for a body that is not JSON."""

    def __init__(self) -> None:
        self.count = 0
        self._is_text = False
        self._is_utf8 = True
        self._escape = b""

    def add(self, piece: bytes) -> None:
        """Count the values in the next bytes."""
        data = self._escape + piece
        # The escaped character is in the next piece.
        self._escape = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        plain = data.removesuffix(self._escape).replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = plain.split(b'"')
        # UTF-16 and UTF-32 contain these bytes within other characters; JSON in UTF-8 has no NUL.
        self._is_utf8 &= b"\0" not in data
        structure = b"".join(parts[self._is_text :: 2]) if self._is_utf8 else data
        self._is_text ^= len(parts) % 2 == 0
        self.count += structure.count(b",") + structure.count(b"[") + structure.count(b"{")
