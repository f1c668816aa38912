"""Credentials of the storage API: a JWT, or a key's handle and secret in the headers of old clients."""

from roost.identity.api_keys import ApiKeys
from roost.identity.auth_request import AuthRequest
from roost.identity.caller import Caller
from roost.identity.credentials import CredentialSource, find_credential, find_key_pair
from roost.identity.errors import MissingCredential, Unauthorised
from roost.web.url_rule import HostKind

_KEY_HOSTS = frozenset({HostKind.STORAGE, HostKind.LOCAL})


async def verify_storage_credential(keys: ApiKeys, request: AuthRequest) -> Caller:
    """Return the caller of a key at an address of the storage API. Raises MissingCredential, Unauthorised."""
    pair, credential = find_key_pair(request.headers), find_credential(request.headers, request.query)
    if pair is None and credential is None:
        raise MissingCredential
    if request.host_kind not in _KEY_HOSTS:
        raise Unauthorised
    if pair is not None:
        return await keys.verify_pair(*pair, counts_use=request.counts_use)
    if credential is None or credential.source is not CredentialSource.HEADER:
        raise Unauthorised
    return await keys.verify(credential.token, counts_use=request.counts_use)
