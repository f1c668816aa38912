"""API shapes of one-time sign-in links."""

from pydantic import Field

from roost.web.schemas import ApiSchema, Moment


class SignInLinkRecord(ApiSchema):
    url: str = Field(examples=[f"http://jhe6vnjj2z84gp4k.agents.localhost:8642/v0/sign-in?code=rst_once_{'0f' * 32}"])
    """Opens the agent's page once, signed in."""
    expires_at: Moment
