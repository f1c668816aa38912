"""Split a text into chunks that an embedding model reads whole, at the ends of paragraphs, sentences or words."""

from collections.abc import Iterator, Sequence

from semantic_text_splitter import TextSplitter

from roost.drivers.embedding.contract import CHUNK_CHARACTERS
from roost.storage.vectors.model import TextChunk, TooManyChunks

OVERLAP_CHARACTERS = 80
"""Characters that a chunk may share with the one before it."""
_BLOCK_CHARACTERS = 20_000
"""The splitter takes quadratic time for long text without spaces, so it gets blocks of this size."""

_splitter = TextSplitter(CHUNK_CHARACTERS, overlap=OVERLAP_CHARACTERS)


def split_text(text: str, limit: int) -> Sequence[TextChunk]:
    """Split a text; chunks have no space at their ends. Blocking, up to a second. Raises TooManyChunks."""
    chunks: list[TextChunk] = []
    for at, block in _split_blocks(text):
        for begin, chunk in _splitter.chunk_indices(block):
            chunks.append(TextChunk(at + begin, at + begin + len(chunk), chunk))
        if len(chunks) > limit:
            raise TooManyChunks(f"The text has more than {limit} chunks of at most {CHUNK_CHARACTERS} characters")
    return chunks


def _split_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield blocks of the text with their offsets, each up to a line end, a space or the maximum size."""
    at = 0
    while at < len(text):
        end = at + _BLOCK_CHARACTERS
        if end < len(text):
            half = at + _BLOCK_CHARACTERS // 2
            end = max(text.rfind("\n", half, end), 0) or max(text.rfind(" ", half, end), 0) or end
        yield at, text[at:end]
        at = end
