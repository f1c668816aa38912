"""One-time sign-in links over HTTP: made with a credential, used by a browser at the agent's address."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from roost.agents.network.sign_in.service import NotABrowser, SignInService, is_navigation
from roost.identity.auth_request import auth_request_of
from roost.identity.authenticator import AgentId, BearerCaller
from roost.identity.credentials import sign_in_headers
from roost.web.schemas import ApiSchema, Moment
from roost.web.service_registry import provide_service


class SignInLinkRecord(ApiSchema):
    url: str = Field(examples=[f"http://jhe6vnjj2z84gp4k.agents.localhost:8642/v0/sign-in?code=rst_once_{'0f' * 32}"])
    """Opens the agent's page once, signed in."""
    expires_at: Moment


Service = Annotated[SignInService, Depends(provide_service(SignInService))]
router = APIRouter(tags=["agents"])
_PATH = "/v0/sign-in"


@router.post("/v0/agents/{agentId}/sign-in-link", status_code=201)
async def create_sign_in_link(caller: BearerCaller, agent_id: AgentId, service: Service) -> SignInLinkRecord:
    """Create a link that signs a browser in at the agent's address, once, within 60 seconds."""
    link = await service.create_link(caller, agent_id)
    return SignInLinkRecord(url=f"{link.origin}{_PATH}?code={link.code.reveal()}", expires_at=link.expires_at)


@router.get(
    _PATH,
    status_code=303,
    response_class=Response,
    responses={303: {"description": "To `/`, with the cookie."}, 401: {}, 404: {}, 429: {}, 503: {}},
)
async def sign_in(request: Request, service: Service, code: str = "") -> Response:
    """Use up a sign-in link: set the cookie with the gateway token and redirect to the agent's page.

    Only the navigation of a browser uses it up; a HEAD, a prefetch or the preview of a chat program gets 400.
    """
    visit = auth_request_of(request)
    if not is_navigation(visit.headers, secure=visit.host.origin.startswith("https:")):
        raise NotABrowser
    token = await service.redeem_code(visit.host.agent_id or "", code, visit.limited_client)
    headers = sign_in_headers(token.reveal(), visit.host.origin, "/", visit.host.cookie_prefix)
    return Response(status_code=HTTPStatus.SEE_OTHER, headers=headers)


@router.head(_PATH, include_in_schema=False)
async def refuse_head() -> Response:
    """Refuse a HEAD, which would otherwise be answered as a GET and use the link up."""
    raise NotABrowser
