"""Files of a workspace: the contract's two operations (Files and snapshots), and others beyond it."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse

from roost.agents.workspace.files import schemas
from roost.agents.workspace.files.errors import FileChanged
from roost.agents.workspace.files.model import FileRange, format_etag, parse_range
from roost.agents.workspace.files.service import AgentFileService
from roost.core.entity_tags import parse_if_match
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.warden_client.files import FileStat
from roost.warden_client.tree import ChangedPaths
from roost.web.responses import describe_events, event_response, format_event
from roost.web.schemas import BINARY, BINARY_CONTENT, IfMatch, describe_body
from roost.web.service_registry import provide_service

Service = Annotated[AgentFileService, Depends(provide_service(AgentFileService))]
FilePath = Annotated[str, Query(alias="path")]
OpenedFile = tuple[FileStat, AsyncIterator[bytes], FileRange | None]
_BYTES = "application/octet-stream"
router = APIRouter(prefix="/v0/agents/{agentId}/files", tags=["files of agents"])


@router.get("", response_class=Response, responses={200: {"content": BINARY_CONTENT}})
async def read_workspace_file(_: AgentCaller, agent_id: AgentId, path: FilePath, files: Service) -> Response:
    """Return the bytes of a file in the agent's files."""
    found, content = await files.read_file(agent_id, path)
    return Response(content, headers=_etag_header(found), media_type=_BYTES)


@router.post("/upload")
async def upload_workspace_file(
    _: AgentCaller, agent_id: AgentId, body: schemas.UploadRequest, files: Service
) -> schemas.UploadResponse:
    """Write a file to the `uploads/` folder of the files."""
    return schemas.UploadResponse(**vars(await files.upload_file(agent_id, body.filename, body.content_base64)))


@router.get("/list")
async def list_workspace_files(
    _: AgentCaller, agent_id: AgentId, query: Annotated[schemas.ListFilesQuery, Query()], files: Service
) -> schemas.FileListRecord:
    """List a folder of the workspace, in the order of the names; `recursive` lists all below it."""
    page = await files.list_page(agent_id, query.path, query.cursor, recursive=query.recursive, limit=query.limit)
    return schemas.FileListRecord.from_page(page)


async def _open_file(
    _: AgentCaller,
    agent_id: AgentId,
    path: FilePath,
    files: Service,
    range_header: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header(alias="If-Range")] = None,
) -> AsyncGenerator[OpenedFile]:
    """Open the file until its response is sent."""
    part = None if if_range else parse_range(range_header)  # the whole file is right for any If-Range
    async with files.open_file(agent_id, path, part or FileRange()) as (found, content):
        yield found, content, part


@router.get(
    "/content",
    response_class=Response,
    responses={200: {"content": BINARY_CONTENT}, 206: {"content": BINARY_CONTENT}, 416: {}},
)
async def download_workspace_file(_: AgentCaller, opened: Annotated[OpenedFile, Depends(_open_file)]) -> Response:
    """Return a file of any size, or one range of it."""
    found, content, part = opened
    begin, end = (part or FileRange()).resolve(found.size)
    headers = _content_headers(part, begin, end, found.size) | _etag_header(found)
    return StreamingResponse(
        _send_exactly(content, end - begin), 200 if part is None else 206, headers, media_type=_BYTES
    )


@router.get("/watch", response_class=Response, responses={200: {"content": describe_events()}})
async def watch_workspace_files(visit: AgentVisit, agent_id: AgentId, files: Service) -> Response:
    """Stream the paths that change, as server-sent events, until the credential becomes invalid."""
    return event_response(visit, files.watch(agent_id), _format_changes)


@router.put("/content", openapi_extra=describe_body(_BYTES, BINARY, required=False), responses={412: {}})
async def save_workspace_file(
    _: AgentCaller,
    agent_id: AgentId,
    path: FilePath,
    request: Request,
    files: Service,
    *,
    executable: bool = False,
    if_match: IfMatch = None,
) -> schemas.SavedFileRecord:
    """Write a file of any size, with its folders; it replaces a file of the same path once all is received.

    With `If-Match`, it replaces only a file that has one of these entity tags.
    """
    tags = parse_if_match(if_match)
    size = await files.save_file(agent_id, path, request.stream(), executable=executable, tags=tags)
    return schemas.SavedFileRecord(path=path, size=size)


@router.delete("", responses={409: {}})
async def delete_workspace_file(
    _: AgentCaller, agent_id: AgentId, path: FilePath, files: Service, *, recursive: bool = False
) -> schemas.FileActionRecord:
    """Delete a file, or a folder; one that is not empty only with `recursive`."""
    await files.delete(agent_id, path, recursive=recursive)
    return schemas.FileActionRecord()


@router.post("/move")
async def move_workspace_file(
    _: AgentCaller, agent_id: AgentId, body: schemas.MoveFileRequest, files: Service
) -> schemas.FileActionRecord:
    """Rename a file or a folder; the target must not exist."""
    await files.move(agent_id, body.path, body.target)
    return schemas.FileActionRecord()


@router.post("/folder")
async def make_workspace_folder(
    _: AgentCaller, agent_id: AgentId, body: schemas.MakeFolderRequest, files: Service
) -> schemas.FileActionRecord:
    """Create a folder with its parents; an existing one is kept."""
    await files.make_folder(agent_id, body.path)
    return schemas.FileActionRecord()


def _etag_header(found: FileStat) -> dict[str, str]:
    etag = format_etag(found)
    return {"ETag": etag} if etag else {}


def _content_headers(part: FileRange | None, begin: int, end: int, size: int) -> dict[str, str]:
    headers = {"Accept-Ranges": "bytes", "Content-Length": str(end - begin), "Cache-Control": "no-store"}
    if part is None:
        return headers
    if begin == end:
        raise HTTPException(416, headers={"Content-Range": f"bytes */{size}"})
    return {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{size}"}


async def _send_exactly(content: AsyncIterator[bytes], size: int) -> AsyncGenerator[bytes]:
    """Yield `size` bytes, and break the response off if there are fewer."""
    async for chunk in content:
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:  # the file may have grown since
            return
    if size:
        raise BrokenPipeError from FileChanged()


def _format_changes(changes: ChangedPaths) -> bytes:
    return format_event(schemas.ChangedFilesRecord.from_changes(changes))
