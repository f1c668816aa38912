"""Credentials that were valid when they were last verified, in the caches of this server."""

from roost.identity.api_keys import ApiKeys, key_pair
from roost.identity.auth_request import AuthRequest, find_session_token
from roost.identity.caller import token_digest
from roost.identity.credentials import find_credential, find_key_pair, find_password
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens
from roost.identity.sessions.service import BrowserSessions


class KnownCredentials:
    """Look-up of credentials without I/O. A known one may have been revoked since, by another server."""

    def __init__(
        self, keys: ApiKeys, gateways: GatewayTokens, platform: PlatformTokens, sessions: BrowserSessions
    ) -> None:
        self._caches = (keys.verified, gateways.verified, platform.verified, sessions.verified)

    def find(self, request: AuthRequest) -> bytes | None:
        """Return the digest of the request's credential if that is known."""
        digest = token_digest(_credential_text(request))
        return digest if any(cache.has(digest) for cache in self._caches) else None


def _credential_text(request: AuthRequest) -> str:
    """Return the text whose digest the caches have: of a token, of a password or of a key's handle and secret."""
    if (pair := find_key_pair(request.headers)) is not None:
        return key_pair(*pair)
    if (session := find_session_token(request)) is not None:
        return session
    credential = find_credential(request.headers, request.query)
    return (credential.token if credential else "") or find_password(request.headers) or ""
