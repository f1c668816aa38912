"""API shapes of browser sessions."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from roost.identity.caller import Plan, Role
from roost.identity.sessions.model import IssuedLink, SessionDetail
from roost.web.schemas import ApiSchema, Moment

_Credential = Annotated[str, Field(min_length=1, max_length=4096)]


class SignInRequest(ApiSchema):
    """The code of a one-time link, or a service JWT."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": f"rst_login_{'0f' * 32}"}]})

    code: Annotated[_Credential | None, Field(repr=False)] = None
    key: Annotated[_Credential | None, Field(repr=False)] = None

    @model_validator(mode="after")
    def _check_one(self) -> "SignInRequest":
        if (self.code is None) is (self.key is None):
            raise ValueError("must have either `code` or `key`")
        return self


class SessionLinkRequest(ApiSchema):
    role: Role = Field(Role.OWNER, examples=["viewer"])
    """Lowered to the caller's own rights."""


class SessionLinkRecord(ApiSchema):
    url: str = Field(repr=False, examples=[f"http://localhost:8642/login#code=rst_login_{'0f' * 32}"])
    """Signs a browser in once."""
    expires_at: Moment


class SessionTenantRecord(ApiSchema):
    id: str
    name: str = Field(examples=["default"])


class SessionRecord(ApiSchema):
    """A session; it ends after 12 hours without a request, too."""

    tenant: SessionTenantRecord
    role: Role = Field(examples=["owner"])
    plan: Plan = Field(examples=["paid"])
    scopes: Sequence[str] = Field(examples=[["org:read"]])
    csrf_token: str = Field(repr=False, examples=["0f" * 32])
    """What each change sends in `X-CSRF-Token`."""
    expires_at: Moment
    operator: bool
    """Whether it may manage the server itself, of which `/v0/system` tells."""


class SessionResponse(ApiSchema):
    session: SessionRecord


class PresentSessionResponse(ApiSchema):
    session: SessionRecord | None
    """Null if the browser is not signed in."""


class EndedSessions(ApiSchema):
    ended: int = Field(examples=[2])
    """Number of sessions; expired ones do not count."""
    agent_ids: Sequence[str] = ()
    """Agents whose present gateway token sessions of the key have read: it goes on working."""


def session_response(detail: SessionDetail) -> SessionResponse:
    return SessionResponse(session=_session_record(detail))


def present_session_response(detail: SessionDetail | None) -> PresentSessionResponse:
    return PresentSessionResponse(session=None if detail is None else _session_record(detail))


def _session_record(detail: SessionDetail) -> SessionRecord:
    tenant = SessionTenantRecord(id=detail.tenant.id, name=detail.tenant.name)
    return SessionRecord(
        tenant=tenant,
        role=detail.role,
        plan=detail.tenant.plan,
        scopes=sorted(detail.scopes),
        csrf_token=detail.csrf_token,
        expires_at=detail.expires_at,
        operator=detail.is_operator,
    )


def link_record(link: IssuedLink) -> SessionLinkRecord:
    return SessionLinkRecord(url=link.url.reveal(), expires_at=link.expires_at)
