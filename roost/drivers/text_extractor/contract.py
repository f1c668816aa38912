"""The contract of a text extractor. Documents are hostile: it limits time and memory and isolates crashes."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from roost.core.problem import InvalidInput, PayloadTooLarge, ServiceUnavailable, TooManyRequests

SOURCE_LIMIT = 64 * 1024**2
"""Maximum bytes of a document."""
UNPACKED_LIMIT = 256 * 1024**2
"""Maximum bytes of all files in a document that is an archive."""
TEXT_LIMIT = 4 * 1024**2
"""Maximum characters of a text."""
TIME_LIMIT_SECONDS = 30.0
"""Maximum time to read one document, without the wait for its turn."""


class UnsupportedDocument(InvalidInput):
    """The document is not text, and no known format with text."""

    message = "Only text, HTML, PDF, Word, PowerPoint, Excel and OpenDocument text files have text that can be read"


class InvalidDocument(InvalidInput):
    """The document is damaged or encrypted; the message says so."""

    message = "The document is damaged"


class DocumentTooLarge(PayloadTooLarge):
    """The document exceeds a limit of bytes, characters, time or memory; the message names it."""

    message = "The document is too large"


class TooManyDocuments(TooManyRequests):
    message = "Too many documents are being read"


class ExtractionUnavailable(ServiceUnavailable):
    """No worker can be started; the log says why, because tenants see the message."""

    message = "Documents cannot be read at the moment"


class TextExtractor(ABC):
    @abstractmethod
    async def extract_text(self, source: AsyncIterator[bytes], size: int, name: str, mime_type: str) -> str:
        r"""Return the text of a document of `size` bytes, empty if it has none (a scan).

        `name` and `mime_type` decide only where the content does not, and may be empty. The text is in NFC, its lines
        end with `\n`, and its only control characters are `\n` and `\t`. Raises the errors of this module, of
        which InvalidDocument is also that of a source of another size, and those of `source`, which is read once.
        """

    @abstractmethod
    async def close(self) -> None:
        """Stop all processes. Idempotent; a later `extract_text` starts new ones."""
