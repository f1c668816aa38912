"""Requests to further endpoints of OpenAI's API, which are passed on to a source that has them."""

from roost.agents.models.gateway.errors import EndpointUnsupported, StoredResponseRefused
from roost.drivers.model.contract import ForwardingUpstream, Json, ModelUpstream

RESPONSES = "/responses"
EMBEDDINGS = "/embeddings"
_STORED_FIELDS = ("previous_response_id", "conversation", "background")


def require_forwarding(upstream: ModelUpstream, model: str, path: str) -> ForwardingUpstream:
    """Return an upstream that has further endpoints. Raises EndpointUnsupported."""
    if not isinstance(upstream, ForwardingUpstream):
        raise EndpointUnsupported(model, path)
    return upstream


def stateless_body(path: str, body: Json) -> Json:
    """Keep a provider from storing a response under a key that agents share, with which each could read it.

    Raises StoredResponseRefused if the request needs stored responses.
    """
    if path != RESPONSES:
        return body
    if used := [name for name in _STORED_FIELDS if body.get(name)]:
        raise StoredResponseRefused(used[0])
    return {**body, "store": False}
