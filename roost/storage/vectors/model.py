"""The vectors of a file: their state, the chunks of its text, and the results of a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, ServiceUnavailable
from roost.identity.caller import Plan
from roost.storage.files.model import File

VECTORIZE = "vectors.vectorize"
"""Kind of the operation that vectorizes a file."""
CHUNKS_LIMIT = 10_000
"""Maximum chunks of a file."""
PLAN_CHUNKS: Mapping[Plan, int] = {Plan.FREE: 10_000, Plan.PAID: 100_000}
"""Maximum chunks of all files of a tenant; a query reads those of one group."""
SEGMENT_CHUNKS = 64
"""Chunks of a segment, which are stored together."""
NUMBER_BYTES = 4
"""Bytes of a number of a vector."""
QUERY_CHARACTERS = 4000
"""Maximum characters of a query; a model may read fewer."""
MATCHES_LIMIT = 20


class VectorState(StrEnum):
    NONE = "none"  # never requested, or deleted
    QUEUED = "queued"
    INDEXING = "indexing"
    INDEXED = "indexed"
    OUTDATED = "outdated"  # made by another model than the present one, and not searched
    FAILED = "failed"


PENDING = (VectorState.QUEUED, VectorState.INDEXING)


@dataclass(frozen=True)
class FileVectors:
    """The row of a file whose vectors were requested.

    state: as stored, never NONE or OUTDATED. model: the id of the model that made them, empty before the first attempt;
    `dimension`: how many numbers its vectors have, 0 before the first one.
    chunks: number of chunks of the text, 0 before it is known; `chunks_done` of them have vectors.
    reason: why it failed, or why it still waits.
    """

    file_id: str
    tenant_id: str
    operation_id: str
    state: VectorState
    model: str
    dimension: int
    chunks: int
    chunks_done: int
    reason: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class VectorizedFile:
    """A file and its vectors, None if they were never requested; `state` compares them with the present model."""

    file: File
    vectors: FileVectors | None
    state: VectorState


@dataclass(frozen=True)
class TextChunk:
    """Part of the text of a file, from character `begin` to before `end`."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class VectorSegment:
    """Neighbouring chunks of a file; the first one has the number `number * SEGMENT_CHUNKS`."""

    file_id: str
    number: int
    chunks: Sequence[TextChunk]
    vectors: Sequence[bytes]


@dataclass(frozen=True)
class NearChunk:
    """A chunk found by its vector; `score` is the cosine of the angle to the query, `number` counts from 0."""

    file_id: str
    number: int
    score: float


@dataclass(frozen=True)
class ChunkMatch:
    file: File
    chunk: TextChunk
    score: float


@dataclass(frozen=True)
class QueryResult:
    """The nearest chunks, the best first; `outdated` files of the group were left out."""

    matches: Sequence[ChunkMatch]
    outdated: int


@dataclass(frozen=True)
class GroupGrant:
    """Permission of an agent to search a group and to vectorize its files."""

    group_id: str
    agent_id: str
    tenant_id: str
    created_at: datetime


def describe_state(vectors: FileVectors | None, model: str, dimension: int | None = None) -> VectorState:
    """Return the state of a file's vectors where `model` is the id of the present model, and `dimension` its own."""
    if vectors is None:
        return VectorState.NONE
    is_present = vectors.model == model and dimension in (None, vectors.dimension)
    return VectorState.OUTDATED if vectors.state is VectorState.INDEXED and not is_present else vectors.state


class FolderNotVectorized(InvalidInput):
    message = "A folder has no text of its own; vectorize the files in it"


class DocumentWithoutText(InvalidInput):
    """A scan, for example."""

    message = "The file has no text"


class TooManyChunks(PayloadTooLarge):
    message = "The text is too long"


class VectorQuotaExceeded(PayloadTooLarge):
    message = "The vectors of your plan are full"


class VectorizationFailed(InvalidInput):
    """The last attempt to vectorize the file failed; the message says why."""

    message = "The file cannot be vectorized"


class VectorizationPostponed(ServiceUnavailable):
    """A driver has no capacity; the message is its own. The attempt is repeated."""

    message = "The file cannot be vectorized at the moment"


class VectorsDeleted(NotFound):
    """The vectors or the file were deleted, or requested again, while an attempt ran."""

    message = "The vectors were deleted"
