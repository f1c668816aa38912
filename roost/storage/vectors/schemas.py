"""Shapes of vectors."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StrictInt, field_validator

from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import Group
from roost.storage.vectors.model import (
    MATCHES_LIMIT,
    QUERY_CHARACTERS,
    ChunkMatch,
    GroupGrant,
    QueryResult,
    VectorizedFile,
    VectorState,
)
from roost.web.schemas import Moment, StorageSchema, Text

_SCORE_DIGITS = 6
_Query = Annotated[Text, Field(min_length=1, max_length=QUERY_CHARACTERS, examples=["How is the boiler serviced?"])]


class QueryVectorsRequest(StorageSchema):
    """`limit`: maximum number of matches."""

    text: _Query
    limit: Annotated[StrictInt, Field(ge=1, le=MATCHES_LIMIT)] = MATCHES_LIMIT

    @field_validator("text")
    @classmethod
    def _has_words(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("text must not be blank")
        return text


class VectorMatch(StorageSchema):
    """A chunk of a file; `begin` and `end` are its characters in the text of the file, `score` is at most 1."""

    file_id: str
    cid: str
    name: str | None
    network: ContentNetwork
    score: float
    text: str
    begin: int
    end: int


class VectorMatches(StorageSchema):
    """The nearest chunks, the best first. `outdated_files` have to be vectorized again to be searched."""

    count: int
    matches: Sequence[VectorMatch]
    outdated_files: int


class VectorsRecord(StorageSchema):
    """Vectors of a file.

    `chunks`: parts of its text, 0 before they are known; `chunks_done` of them have vectors. `reason`: why it failed or
    still waits. `model`: what made the vectors. `updated_at` is null if vectors were never requested.
    """

    file_id: str
    cid: str
    name: str | None
    network: ContentNetwork
    mime_type: str
    size: int
    state: VectorState
    chunks: int
    chunks_done: int
    model: str | None
    reason: str | None
    updated_at: Moment | None


class VectorizeResponse(StorageSchema):
    """`success` is true if the file has vectors or will have them; clients of other services read `status`."""

    success: bool = True
    status: VectorState
    data: VectorsRecord


class DeleteVectorsResponse(StorageSchema):
    """Contract, Vector deletion result."""

    success: bool = True


class VectorizedFileList(StorageSchema):
    """`next_page_token` is empty on the last page."""

    files: Sequence[VectorsRecord]
    next_page_token: str = ""


class SearchableGroupRecord(StorageSchema):
    id: str
    name: str
    network: ContentNetwork


class SearchableGroupList(StorageSchema):
    groups: Sequence[SearchableGroupRecord]


class GroupAgentRecord(StorageSchema):
    agent_id: str
    created_at: Moment


class GroupAgentList(StorageSchema):
    agents: Sequence[GroupAgentRecord]


def vectors_record(found: VectorizedFile) -> VectorsRecord:
    file, vectors = found.file, found.vectors
    return VectorsRecord(
        file_id=file.id,
        cid=file.cid,
        name=file.metadata.name,
        network=file.network,
        mime_type=file.mime_type,
        size=file.size,
        state=found.state,
        chunks=vectors.chunks if vectors else 0,
        chunks_done=vectors.chunks_done if vectors else 0,
        model=(vectors.model or None) if vectors else None,
        reason=vectors.reason if vectors else None,
        updated_at=vectors.updated_at if vectors else None,
    )


def vectorize_response(found: VectorizedFile) -> VectorizeResponse:
    return VectorizeResponse(status=found.state, data=vectors_record(found))


def vectorized_file_list(files: Sequence[VectorizedFile], token: str | None) -> VectorizedFileList:
    return VectorizedFileList(files=[vectors_record(file) for file in files], next_page_token=token or "")


def vector_matches(result: QueryResult) -> VectorMatches:
    matches = [_vector_match(match) for match in result.matches]
    return VectorMatches(count=len(matches), matches=matches, outdated_files=result.outdated)


def searchable_group_list(groups: Sequence[Group]) -> SearchableGroupList:
    return SearchableGroupList(groups=[SearchableGroupRecord(**vars(group)) for group in groups])


def group_agent_list(grants: Sequence[GroupGrant]) -> GroupAgentList:
    return GroupAgentList(agents=[GroupAgentRecord(**vars(grant)) for grant in grants])


def _vector_match(match: ChunkMatch) -> VectorMatch:
    return VectorMatch(
        file_id=match.file.id,
        cid=match.file.cid,
        name=match.file.metadata.name,
        network=match.file.network,
        score=round(match.score, _SCORE_DIGITS),
        text=match.chunk.text,
        begin=match.chunk.begin,
        end=match.chunk.end,
    )
