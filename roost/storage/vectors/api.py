"""Vectors of files over HTTP (contract, Storage API 5): request, show, delete, search, and the grants of agents."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, StrictInt, ValidationError, field_validator

from roost.identity.authenticator import AgentId, OrgReader, OrgWriter, VectorsReader, VectorsWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import PAGE_DEFAULT, PAGE_LIMIT
from roost.storage.vectors.model import MATCHES_LIMIT, QUERY_CHARACTERS, ChunkMatch, VectorizedFile, VectorState
from roost.storage.vectors.service import VectorGrantService, VectorService
from roost.web.schemas import DataEnvelope, Moment, StorageSchema, Text, describe_body
from roost.web.service_registry import provide_service

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


def _vector_match(match: ChunkMatch) -> VectorMatch:
    return VectorMatch(
        **vars(match.chunk),
        file_id=match.file.id,
        cid=match.file.cid,
        name=match.file.metadata.name,
        network=match.file.network,
        score=round(match.score, _SCORE_DIGITS),
    )


Service = Annotated[VectorService, Depends(provide_service(VectorService))]
Grants = Annotated[VectorGrantService, Depends(provide_service(VectorGrantService))]
VectorFileId = Annotated[str, Path(alias="file_id", max_length=64)]
VectorGroupId = Annotated[str, Path(alias="id", max_length=64)]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
router = APIRouter(prefix="/v3/vectorize", tags=["vectors"])


async def _receive_query(request: Request) -> QueryVectorsRequest:
    """Read the body as JSON, whatever type it has: clients send `text/plain`."""
    try:
        return QueryVectorsRequest.model_validate_json(await request.body())
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from None


VectorQuery = Annotated[QueryVectorsRequest, Depends(_receive_query)]


@router.post("/files/{file_id}")
async def vectorize_file(caller: VectorsWriter, file_id: VectorFileId, vectors: Service) -> VectorizeResponse:
    """Vectorize a file, so that its group can be searched; wait for small files.

    The response comes within 20 seconds, and the work continues. A file that has no text, or cannot be read, is an
    error.
    """
    found = await vectors.vectorize(caller, file_id)
    return VectorizeResponse(status=found.state, data=vectors_record(found))


@router.get("/files/{file_id}")
async def get_file_vectors(
    caller: VectorsReader, file_id: VectorFileId, vectors: Service
) -> DataEnvelope[VectorsRecord]:
    """Return the state of the vectors of a file."""
    return DataEnvelope(data=vectors_record(await vectors.get(caller, file_id)))


@router.delete("/files/{file_id}")
async def delete_file_vectors(caller: OrgWriter, file_id: VectorFileId, vectors: Service) -> DeleteVectorsResponse:
    """Delete the vectors of a file. The file is kept."""
    await vectors.delete(caller.tenant_id, file_id)
    return DeleteVectorsResponse()


@router.get("/groups")
async def list_searchable_groups(caller: VectorsReader, grants: Grants) -> DataEnvelope[SearchableGroupList]:
    """List the groups that the calling agent may search, or with a key those that any agent may search."""
    groups = [SearchableGroupRecord(**vars(group)) for group in await grants.list_groups(caller)]
    return DataEnvelope(data=SearchableGroupList(groups=groups))


@router.get("/groups/{id}/files")
async def list_vectorized_files(
    caller: VectorsReader,
    group_id: VectorGroupId,
    vectors: Service,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> DataEnvelope[VectorizedFileList]:
    """List the files of a group with the states of their vectors, newest first."""
    page, following = await vectors.list_group(caller, group_id, token, limit)
    records = [vectors_record(file) for file in page]
    return DataEnvelope(data=VectorizedFileList(files=records, next_page_token=following or ""))


@router.post(
    "/groups/{id}/query", openapi_extra=describe_body("application/json", QueryVectorsRequest.model_json_schema())
)
async def query_vectors(
    caller: VectorsReader, group_id: VectorGroupId, query: VectorQuery, vectors: Service
) -> DataEnvelope[VectorMatches]:
    """Return the chunks of a group's files that are nearest to a text; the body is read as JSON whatever its type."""
    result = await vectors.query(caller, group_id, query.text, query.limit)
    matches = [_vector_match(match) for match in result.matches]
    return DataEnvelope(data=VectorMatches(count=len(matches), matches=matches, outdated_files=result.outdated))


@router.get("/groups/{id}/agents")
async def list_group_agents(caller: OrgReader, group_id: VectorGroupId, grants: Grants) -> DataEnvelope[GroupAgentList]:
    """List the agents that may search a group and vectorize its files."""
    agents = [GroupAgentRecord(**vars(grant)) for grant in await grants.list_agents(caller.tenant_id, group_id)]
    return DataEnvelope(data=GroupAgentList(agents=agents))


@router.put("/groups/{id}/agents/{agentId}")
async def grant_group(
    caller: OrgWriter, group_id: VectorGroupId, agent_id: AgentId, grants: Grants
) -> DataEnvelope[None]:
    """Allow an agent to search a group and to vectorize its files."""
    await grants.grant(caller.tenant_id, group_id, agent_id)
    return DataEnvelope(data=None)


@router.delete("/groups/{id}/agents/{agentId}")
async def revoke_group(
    caller: OrgWriter, group_id: VectorGroupId, agent_id: AgentId, grants: Grants
) -> DataEnvelope[None]:
    """Take that permission from an agent."""
    await grants.revoke(caller.tenant_id, group_id, agent_id)
    return DataEnvelope(data=None)
