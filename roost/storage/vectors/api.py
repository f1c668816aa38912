"""Vectors of files over HTTP (contract, Storage API 5): request, show, delete, search, and the grants of agents."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from roost.identity.authenticator import AgentId, OrgReader, OrgWriter, VectorsReader, VectorsWriter
from roost.storage.files.model import PAGE_DEFAULT, PAGE_LIMIT
from roost.storage.vectors import schemas
from roost.storage.vectors.grants import VectorGrantService
from roost.storage.vectors.service import VectorService
from roost.web.schemas import DataEnvelope, describe_body
from roost.web.service_registry import provide_service

Service = Annotated[VectorService, Depends(provide_service(VectorService))]
Grants = Annotated[VectorGrantService, Depends(provide_service(VectorGrantService))]
VectorFileId = Annotated[str, Path(alias="file_id", max_length=64)]
VectorGroupId = Annotated[str, Path(alias="id", max_length=64)]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
router = APIRouter(prefix="/v3/vectorize", tags=["vectors"])


async def _receive_query(request: Request) -> schemas.QueryVectorsRequest:
    """Read the body as JSON, whatever type it has: clients send `text/plain`."""
    try:
        return schemas.QueryVectorsRequest.model_validate_json(await request.body())
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from None


VectorQuery = Annotated[schemas.QueryVectorsRequest, Depends(_receive_query)]


@router.post("/files/{file_id}")
async def vectorize_file(caller: VectorsWriter, file_id: VectorFileId, vectors: Service) -> schemas.VectorizeResponse:
    """Vectorize a file, so that its group can be searched; wait for small files.

    The response comes within 20 seconds, and the work continues. A file that has no text, or cannot be read, is an
    error.
    """
    return schemas.vectorize_response(await vectors.vectorize(caller, file_id))


@router.get("/files/{file_id}")
async def get_file_vectors(
    caller: VectorsReader, file_id: VectorFileId, vectors: Service
) -> DataEnvelope[schemas.VectorsRecord]:
    """Return the state of the vectors of a file."""
    return DataEnvelope(data=schemas.vectors_record(await vectors.get(caller, file_id)))


@router.delete("/files/{file_id}")
async def delete_file_vectors(
    caller: OrgWriter, file_id: VectorFileId, vectors: Service
) -> schemas.DeleteVectorsResponse:
    """Delete the vectors of a file. The file is kept."""
    await vectors.delete(caller.tenant_id, file_id)
    return schemas.DeleteVectorsResponse()


@router.get("/groups")
async def list_searchable_groups(caller: VectorsReader, grants: Grants) -> DataEnvelope[schemas.SearchableGroupList]:
    """List the groups that the calling agent may search, or with a key those that any agent may search."""
    return DataEnvelope(data=schemas.searchable_group_list(await grants.list_groups(caller)))


@router.get("/groups/{id}/files")
async def list_vectorized_files(
    caller: VectorsReader,
    group_id: VectorGroupId,
    vectors: Service,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> DataEnvelope[schemas.VectorizedFileList]:
    """List the files of a group with the states of their vectors, newest first."""
    page, following = await vectors.list_group(caller, group_id, token, limit)
    return DataEnvelope(data=schemas.vectorized_file_list(page, following))


@router.post(
    "/groups/{id}/query",
    openapi_extra=describe_body("application/json", schemas.QueryVectorsRequest.model_json_schema()),
)
async def query_vectors(
    caller: VectorsReader, group_id: VectorGroupId, query: VectorQuery, vectors: Service
) -> DataEnvelope[schemas.VectorMatches]:
    """Return the chunks of a group's files that are nearest to a text; the body is read as JSON whatever its type."""
    return DataEnvelope(data=schemas.vector_matches(await vectors.query(caller, group_id, query.text, query.limit)))


@router.get("/groups/{id}/agents")
async def list_group_agents(
    caller: OrgReader, group_id: VectorGroupId, grants: Grants
) -> DataEnvelope[schemas.GroupAgentList]:
    """List the agents that may search a group and vectorize its files."""
    return DataEnvelope(data=schemas.group_agent_list(await grants.list_agents(caller.tenant_id, group_id)))


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
