"""The contract of an embedding model, which turns texts into vectors that are compared by their scalar product."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core.problem import Problem, ServiceUnavailable
from roost.core.sensitive import Sensitive

CHUNK_CHARACTERS = 800
"""Characters of a text that a model surely sees; it may cut off the rest."""


@dataclass(frozen=True)
class EmbeddingSettings:
    """An OpenAI-compatible endpoint; `url` has the API version (`https://host/v1`)."""

    url: str
    model: str
    key: Sensitive[str] | None = None


class EmbeddingUnavailable(ServiceUnavailable):
    """The model cannot be reached or started, or is overloaded; a later attempt can succeed."""

    message = "The embedding model is not available"


class EmbeddingFailed(Problem):
    """The model refused the texts or gave an unusable answer; the same attempt would fail again."""

    message = "The embedding model failed"


class EmbeddingModel(ABC):
    @property
    @abstractmethod
    def model_id(self) -> str:
        """Identify the model. Vectors of different models, or of different lengths, cannot be compared."""

    @abstractmethod
    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """Return the vector of each text, in their order.

        A vector is float32 numbers in little-endian order, of length 1; all of a model have the same dimension. There
        may be any number of texts, and a text may be empty or longer than the model reads; calls at the same time take
        turns. Raises EmbeddingUnavailable, EmbeddingFailed.
        """

    @abstractmethod
    async def close(self) -> None:
        """Stop all processes and connections. Idempotent; a later `embed_texts` starts new ones."""
