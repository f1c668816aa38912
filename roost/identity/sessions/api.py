"""Browser sessions over HTTP, at the dashboard's hosts; links are made at any management address."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from roost.identity.auth_request import AuthRequest, auth_request_of, check_same_origin, find_session_token
from roost.identity.authenticator import ServiceCaller
from roost.identity.caller import Caller
from roost.identity.credentials import ended_session_headers, session_headers
from roost.identity.errors import Unauthorised
from roost.identity.gateway_tokens import TokenReads
from roost.identity.sessions import schemas
from roost.identity.sessions.service import BrowserSessions
from roost.web.service_registry import provide_service

Service = Annotated[BrowserSessions, Depends(provide_service(BrowserSessions))]
Reads = Annotated[TokenReads, Depends(provide_service(TokenReads))]
router = APIRouter(prefix="/v0/session", tags=["sessions"])
_ELSEWHERE: dict[int | str, dict[str, Any]] = {404: {}}  # at addresses without a dashboard


async def own_page(request: Request) -> AuthRequest:
    """Check that no page of another site signs the browser in. Raises ForeignOrigin."""
    visit = auth_request_of(request)
    check_same_origin(visit)
    return visit


async def session_caller(request: Request, sessions: Service) -> Caller:
    return await sessions.authenticate(auth_request_of(request))


async def find_session_caller(request: Request, sessions: Service) -> Caller | None:
    """Return the caller of the browser's session, None without one that is valid. Raises ForeignOrigin."""
    try:
        return await sessions.find_caller(auth_request_of(request))
    except Unauthorised:
        return None


OwnPage = Annotated[AuthRequest, Depends(own_page)]
SessionCaller = Annotated[Caller, Depends(session_caller)]


@router.post("", responses=_ELSEWHERE)
async def open_session(
    visit: OwnPage, body: schemas.SignInRequest, sessions: Service, response: Response
) -> schemas.SessionResponse:
    """Sign a browser in by the code of a one-time link or a service JWT: set the cookie `roost_session`.

    A session that the browser had ends.
    """
    client, replaced = visit.limited_client, find_session_token(visit) or ""
    if body.code is not None:
        started = await sessions.redeem_code(body.code, client, replaced)
    else:
        started = await sessions.sign_in(body.key or "", client, replaced)
    response.headers.update(session_headers(visit.host.session_cookie or "", started.token.reveal(), visit.host.origin))
    return schemas.session_response(started.detail)


@router.get("", responses={**_ELSEWHERE, 403: {}, 503: {}})
async def show_session(
    caller: Annotated[Caller | None, Depends(find_session_caller)], sessions: Service, response: Response
) -> schemas.PresentSessionResponse:
    """Return the browser's session; null, and no error, if it is not signed in."""
    response.headers["Cache-Control"] = "no-store"
    detail = None if caller is None else await sessions.describe(caller)
    return schemas.present_session_response(detail)


@router.delete("", status_code=204, responses=_ELSEWHERE)
async def end_session(caller: SessionCaller, request: Request, sessions: Service) -> Response:
    """End the browser's session; its open streams close within a second."""
    await sessions.end(caller)
    visit = auth_request_of(request)
    return Response(status_code=204, headers=ended_session_headers(visit.host.session_cookie or "", visit.host.origin))


@router.delete("/all")
async def end_all_sessions(
    caller: ServiceCaller, request: Request, sessions: Service, reads: Reads, response: Response
) -> schemas.EndedSessions:
    """End all browser sessions of the credential's key, and its unused links; streams close within a second."""
    ended = await sessions.end_all(caller)
    visit = auth_request_of(request)
    if caller.session_digest is not None:
        response.headers.update(ended_session_headers(visit.host.session_cookie or "", visit.host.origin))
    known = [read.agent_id for read in await reads.list(caller.key_id or "") if read.in_session]
    return schemas.EndedSessions(ended=ended, agent_ids=known)


@router.post("/links", status_code=201)
async def create_session_link(
    caller: ServiceCaller, body: schemas.SessionLinkRequest, sessions: Service, response: Response
) -> schemas.SessionLinkRecord:
    """Create a link that signs a browser in once, within 10 minutes, with a role or the highest that the caller has."""
    response.headers["Cache-Control"] = "no-store"
    return schemas.link_record(await sessions.create_link(caller, body.role))
