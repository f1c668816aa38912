"""Files of a workspace: the contract's two operations (Files and snapshots), and others beyond it."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from roost.agents.workspace.files.model import PAGE_LIMIT, FileChanged, FileRange, format_etag, parse_range, spell_path
from roost.agents.workspace.files.service import AgentFileService
from roost.core.entity_tags import parse_if_match
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.warden_client.files import FileStat, FolderEntry
from roost.warden_client.tree import ChangedPaths
from roost.web.responses import describe_events, event_response, format_event
from roost.web.schemas import BINARY, BINARY_CONTENT, ApiSchema, IfMatch, Moment, describe_body
from roost.web.service_registry import provide_service


class UploadRequest(ApiSchema):
    filename: Annotated[str, Field(json_schema_extra={"minLength": 1})]
    content_base64: str


class UploadResponse(ApiSchema):
    path: str
    filename: str
    size: int


class ListFilesQuery(ApiSchema):
    path: str = "."
    recursive: bool = False
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT
    cursor: str | None = None


class MoveFileRequest(ApiSchema):
    path: str
    target: str


class MakeFolderRequest(ApiSchema):
    path: str


class FileEntryRecord(ApiSchema):
    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    executable: bool
    modified_at: Moment

    @classmethod
    def from_entry(cls, entry: FolderEntry) -> Self:
        path = spell_path(entry.name)
        executable = entry.kind == "file" and bool(entry.mode & 0o100)
        return cls(path=path, kind=entry.kind, size=entry.size, executable=executable, modified_at=entry.modified_at)


class FileListRecord(ApiSchema):
    entries: Sequence[FileEntryRecord]
    next_cursor: str | None


class ChangedFilesRecord(ApiSchema):
    """Paths of entries that changed; a folder stands for all below it. If not `complete`, anything may have changed."""

    paths: Sequence[str]
    complete: bool


class SavedFileRecord(ApiSchema):
    path: str
    size: int


class FileActionRecord(ApiSchema):
    success: bool = True


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
    _: AgentCaller, agent_id: AgentId, body: UploadRequest, files: Service
) -> UploadResponse:
    """Write a file to the `uploads/` folder of the files."""
    path, size = await files.upload_file(agent_id, body.filename, body.content_base64)
    return UploadResponse(path=path, filename=body.filename, size=size)


@router.get("/list")
async def list_workspace_files(
    _: AgentCaller, agent_id: AgentId, query: Annotated[ListFilesQuery, Query()], files: Service
) -> FileListRecord:
    """List a folder of the workspace, in the order of the names; `recursive` lists all below it."""
    found, next_cursor = await files.list_page(
        agent_id, query.path, query.cursor, recursive=query.recursive, limit=query.limit
    )
    return FileListRecord(entries=[FileEntryRecord.from_entry(entry) for entry in found], next_cursor=next_cursor)


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
) -> SavedFileRecord:
    """Write a file of any size, with its folders; it replaces a file of the same path once all is received.

    With `If-Match`, it replaces only a file that has one of these entity tags.
    """
    tags = parse_if_match(if_match)
    size = await files.save_file(agent_id, path, request.stream(), executable=executable, tags=tags)
    return SavedFileRecord(path=path, size=size)


@router.delete("", responses={409: {}})
async def delete_workspace_file(
    _: AgentCaller, agent_id: AgentId, path: FilePath, files: Service, *, recursive: bool = False
) -> FileActionRecord:
    """Delete a file, or a folder; one that is not empty only with `recursive`."""
    await files.delete(agent_id, path, recursive=recursive)
    return FileActionRecord()


@router.post("/move")
async def move_workspace_file(
    _: AgentCaller, agent_id: AgentId, body: MoveFileRequest, files: Service
) -> FileActionRecord:
    """Rename a file or a folder; the target must not exist."""
    await files.move(agent_id, body.path, body.target)
    return FileActionRecord()


@router.post("/folder")
async def make_workspace_folder(
    _: AgentCaller, agent_id: AgentId, body: MakeFolderRequest, files: Service
) -> FileActionRecord:
    """Create a folder with its parents; an existing one is kept."""
    await files.make_folder(agent_id, body.path)
    return FileActionRecord()


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
    paths = sorted(map(spell_path, changes.paths))
    return format_event(ChangedFilesRecord(paths=paths, complete=changes.is_complete))
