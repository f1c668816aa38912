"""Embedding model in this process for tests: texts with the same words have near vectors."""

import hashlib
import math
import re
import struct
from collections.abc import Sequence

from roost.drivers.embedding.contract import EmbeddingModel, EmbeddingUnavailable

_DIMENSION = 128


class FakeEmbeddingModel(EmbeddingModel):
    """`texts` are those that it embedded; `is_available` tells whether it works."""

    def __init__(self, model_id: str = "fake") -> None:
        self._model_id = model_id
        self.texts: list[str] = []
        self.is_available = True

    @property
    def model_id(self) -> str:
        return self._model_id

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        if not self.is_available:
            raise EmbeddingUnavailable
        self.texts += texts
        return [_embed_words(re.findall(r"\w+", text.casefold())) for text in texts]

    async def close(self) -> None:
        self.texts.clear()


def _embed_words(words: Sequence[str]) -> bytes:
    """Add 1 at a place of each word, and at the first one, so that no vector is zero."""
    numbers = [0.01, *(0.0 for _ in range(_DIMENSION - 1))]
    for word in words:
        numbers[int.from_bytes(hashlib.sha256(word.encode(errors="replace")).digest()[:8]) % _DIMENSION] += 1
    length = math.hypot(*numbers)
    return struct.pack(f"<{_DIMENSION}f", *(number / length for number in numbers))
