"""Git over HTTP (contract: Git Smart HTTP)."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request, Response

from roost.agents.workspace.git.request_limits import UnknownGitService, read_body
from roost.agents.workspace.git.service import AgentGitService
from roost.drivers.git.contract import GitService
from roost.identity.authenticator import AgentId, GitCaller
from roost.web.responses import DuplexResponse, Produce
from roost.web.schemas import BINARY, describe_body
from roost.web.service_registry import provide_service

Service = Annotated[AgentGitService, Depends(provide_service(AgentGitService))]
Protocol = Annotated[str, Header(alias="Git-Protocol", description="Versions of the protocol, such as `version=2`.")]
DecodeBody = Callable[[AsyncIterator[bytes]], AsyncGenerator[bytes]]
router = APIRouter(prefix="/v0/agents/{agentId}/git", tags=["git"])


def _media_type(service: GitService, kind: str) -> str:
    return f"application/x-{service}-{kind}"


def _describe_output(*media_types: str) -> dict[int | str, dict[str, object]]:
    return {200: {"content": {media_type: {"schema": BINARY} for media_type in media_types}}}


async def parse_service(
    service: Annotated[str, Query(description="`git-upload-pack` or `git-receive-pack`.")] = "",
) -> GitService:
    try:
        return GitService(service)
    except ValueError:
        raise UnknownGitService from None


@router.get(
    "/info/refs",
    response_class=Response,
    responses=_describe_output(*(_media_type(service, "advertisement") for service in GitService)),
)
async def advertise_references(
    _: GitCaller,
    agent_id: AgentId,
    service: Annotated[GitService, Depends(parse_service)],
    git: Service,
    protocol: Protocol = "",
) -> Response:
    """List the references that a client can fetch or push to."""
    return _stream(lambda _: git.advertise(agent_id, service, protocol), _media_type(service, "advertisement"))


ContentType = Annotated[str, Header(alias="Content-Type", include_in_schema=False)]
ContentCoding = Annotated[str, Header(alias="Content-Encoding", include_in_schema=False)]


async def _accept_body(request: Request, content_type: ContentType = "", coding: ContentCoding = "") -> DecodeBody:
    """Return how to read the body. Raises 415 for the type of another service."""
    if content_type != f"application/x-{request.url.path.rpartition('/')[2]}-request":
        raise HTTPException(415)
    return partial(read_body, is_compressed=coding.lower() in {"gzip", "x-gzip"})


@router.post(
    "/git-upload-pack",
    response_class=Response,
    responses=_describe_output(_media_type(GitService.UPLOAD_PACK, "result")),
    openapi_extra=describe_body(_media_type(GitService.UPLOAD_PACK, "request"), BINARY),
)
async def clone_or_pull(
    _: GitCaller,
    agent_id: AgentId,
    git: Service,
    decode: Annotated[DecodeBody, Depends(_accept_body)],
    protocol: Protocol = "",
) -> Response:
    """Send the objects that a client asks for."""
    media_type = _media_type(GitService.UPLOAD_PACK, "result")
    return _stream(lambda body: git.upload_pack(agent_id, protocol, decode(body)), media_type)


@router.post(
    "/git-receive-pack",
    response_class=Response,
    responses=_describe_output(_media_type(GitService.RECEIVE_PACK, "result")),
    openapi_extra=describe_body(_media_type(GitService.RECEIVE_PACK, "request"), BINARY),
)
async def receive_push(
    _: GitCaller,
    agent_id: AgentId,
    git: Service,
    decode: Annotated[DecodeBody, Depends(_accept_body)],
    protocol: Protocol = "",
) -> Response:
    """Accept a push to `main`, apply it to the agent's files and run its build script."""
    media_type = _media_type(GitService.RECEIVE_PACK, "result")
    return _stream(lambda body: git.receive_pack(agent_id, protocol, decode(body)), media_type)


def _stream(produce: Produce, media_type: str) -> Response:
    return DuplexResponse(produce, media_type, {"Cache-Control": "no-cache"})
