"""Upstreams behind a model provider's endpoint, which limit answers and turn failures into UpstreamProblem.

Redirects are not followed, because they would forward the key. The operator's proxy and certificate variables
(`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` ...) apply, except to an endpoint on the loopback interface.
"""

import re
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import ClassVar

import httpx2

from roost.core import log
from roost.core.event_stream_decoder import EventStreamDecoder, EventTooLongError, ServerSentEvent
from roost.core.machine.network_advice import describe_network_error
from roost.core.problem import Problem
from roost.drivers.model.contract import (
    Json,
    ModelSettings,
    ModelUpstream,
    UpstreamDenied,
    UpstreamLimited,
    UpstreamMissing,
    UpstreamProblem,
    UpstreamRefused,
    UpstreamTooLarge,
    UpstreamUnavailable,
)
from roost.drivers.model.json_access import as_list, as_object, as_string, parse_json
from roost.drivers.model.provider_error import ProviderError, find_error, read_error
from roost.net.guarded_transport import is_loopback_url

CONNECT_SECONDS = 10.0
LIST_SECONDS = 120.0
"""Timeouts: to connect, and for a list of models."""
MAX_ANSWER_BYTES = 32 * 1024**2
_MAX_ERROR_BYTES = 64 * 1024
_MAX_MESSAGE_LENGTH = 500
_MAX_RETRY_SECONDS = 3600.0
_CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=50)
_MAX_MODELS = 5_000
_MAX_ID_LENGTH = 200
_KEY_LIKE = re.compile(r"\bsk-[\w*.-]+")

_PROBLEMS: Mapping[int, type[UpstreamProblem]] = {
    **dict.fromkeys((401, 402, 403), UpstreamDenied),
    404: UpstreamMissing,
    413: UpstreamTooLarge,
    429: UpstreamLimited,
}
_log = log.get_logger(__name__)


class RemoteUpstream(ModelUpstream):
    """Base of upstreams behind the endpoint of a provider. list_path: where it lists its models."""

    list_path: ClassVar[str]

    def __init__(self, settings: ModelSettings, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Connect to an endpoint. Callers limit the time of requests other than the list of models.

        `transport` replaces the process's own network and its proxies. It may refuse with a Problem.
        """
        super().__init__(settings.name)
        self._settings = settings
        self._client = httpx2.AsyncClient(
            base_url=settings.url,
            headers={"User-Agent": "roost", "Accept-Encoding": "identity", **self._headers()},
            limits=_CONNECTIONS,
            transport=transport,
            trust_env=not is_loopback_url(settings.url),
        )

    async def list_models(self) -> Sequence[str]:
        if self._settings.models:
            return self._settings.models
        return _model_ids(await self._request("GET", self.list_path, None, LIST_SECONDS), self._settings.prefer)

    async def close(self) -> None:
        await self._client.aclose()

    def _headers(self) -> Mapping[str, str]:
        """Return the headers of each request that contain the key, or depend on the provider."""
        key = self._settings.key
        return {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}

    async def _post(self, path: str, body: Json) -> Json:
        return await self._request("POST", path, body, None)

    async def _stream_events(self, path: str, body: Json) -> AsyncGenerator[Json, None]:
        """Yield the JSON objects of a stream of server-sent events, until its end or `[DONE]`."""
        with self._translate_errors():
            timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
            async with self._client.stream("POST", path, json=body, timeout=timeout) as response:
                await self._check_status(response)
                await self._require_events(response)
                decoder = EventStreamDecoder()
                async for chunk in response.aiter_bytes():
                    for event in decoder.feed(chunk):
                        if event.data == "[DONE]":
                            return
                        if event.data:
                            yield self._parse_event(event)

    def _redact_failure(self, response: Json) -> Json:
        """Return an object of the Responses API with the keys in its error redacted."""
        if not (error := as_object(response.get("error"))):
            return response
        return {**response, "error": {**error, "message": self._redact(as_string(error.get("message")))}}

    def _malformed_answer(self, reason: str = "") -> UpstreamUnavailable:
        """Return the problem for an answer that violates the protocol."""
        text = f"The answer of the model provider {self.name} is malformed"
        return UpstreamUnavailable(f"{text}: {reason}" if reason else text)

    def _truncated_stream(self) -> UpstreamUnavailable:
        """Return the problem for a stream that ended before the answer was complete."""
        return UpstreamUnavailable(f"The answer of the model provider {self.name} ended early")

    async def _request(self, method: str, path: str, body: Json | None, timeout_seconds: float | None) -> Json:
        with self._translate_errors():
            timeout = httpx2.Timeout(timeout_seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
            async with self._client.stream(method, path, json=body, timeout=timeout) as response:
                await self._check_status(response)
                content, complete = await _read_body(response, MAX_ANSWER_BYTES)
        if not complete:
            raise self._malformed_answer()
        value = parse_json(content)
        if error := find_error(value):
            raise self._known_error(error)
        if not as_object(value):
            raise self._malformed_answer()
        return as_object(value)

    async def _require_events(self, response: httpx2.Response) -> None:
        """Raise the error, or the fault, of an answer that is no event stream."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return
        content, _ = await _read_body(response, _MAX_ERROR_BYTES)
        if error := find_error(parse_json(content)):
            raise self._known_error(error)
        raise self._malformed_answer(f"it answered {kind[:100] or 'nothing'} instead of an event stream")

    def _parse_event(self, event: ServerSentEvent) -> Json:
        """Return the object of an event. Raises UpstreamProblem for the error that it is."""
        value = parse_json(event.data)
        if error := find_error(value):
            raise self._known_error(error)
        if event.name == "error":
            raise self._known_error(read_error(event.data if value is None else value))
        if not as_object(value):
            raise self._malformed_answer()
        return as_object(value)

    async def _check_status(self, response: httpx2.Response) -> None:
        """Raise the UpstreamProblem for an error status and its body."""
        status = response.status_code
        if 200 <= status < 300:
            return
        content, _ = await _read_body(response, _MAX_ERROR_BYTES)
        is_json = parse_json(content) is not None or content.strip() == b"null"
        error = read_error(parse_json(content) if is_json else _plain_text(response, content))
        raise self._problem(_problem_class(status), error, _retry_after(response))

    def _known_error(self, error: ProviderError) -> UpstreamProblem:
        """Return the problem for an error whose answer had a status of success."""
        return self._problem(UpstreamUnavailable if error.status is None else _problem_class(error.status), error)

    def _problem(
        self, kind: type[UpstreamProblem], error: ProviderError, retry_after: float | None = None
    ) -> UpstreamProblem:
        message = self._redact(error.message)
        _log.warning("upstream.request_refused", upstream=self.name, problem=kind.__name__, reason=message)
        if kind is UpstreamDenied:
            message = ""  # it may contain parts of the key
        text = f"{kind.message} ({self.name})" + (f": {message}" if message else "")
        return kind(text, extra={"code": error.code} if error.code else None, retry_after=retry_after)

    def _redact(self, text: str) -> str:
        if self._settings.key is not None and (key := self._settings.key.reveal()):
            text = text.replace(key, "[redacted]")
        return _KEY_LIKE.sub("[redacted]", log.redact_credentials(text))[:_MAX_MESSAGE_LENGTH]

    @contextmanager
    def _translate_errors(self) -> Generator[None, None, None]:
        try:
            yield
        except UpstreamProblem:
            raise
        except EventTooLongError:
            raise self._malformed_answer("an event is too long") from None
        except Problem as refusal:
            raise UpstreamUnavailable(f"{UpstreamUnavailable.message} ({self.name}): {refusal.message}") from None
        except httpx2.RequestError as error:
            reason = describe_network_error(error)
            raise UpstreamUnavailable(f"{UpstreamUnavailable.message} ({self.name}): {reason}") from error


def _model_ids(answer: Json, prefer: Sequence[str]) -> Sequence[str]:
    """Return the ids in a list of models, preferred ones first; OpenAI and Anthropic use the same format."""
    found = (as_string(as_object(entry).get("id")) for entry in as_list(answer.get("data"))[:_MAX_MODELS])
    models = [model for model in found if 0 < len(model) <= _MAX_ID_LENGTH]
    return sorted(models, key=lambda model: _rank(model, prefer))


def _rank(model: str, prefer: Sequence[str]) -> int:
    return next((rank for rank, pattern in enumerate(prefer) if fnmatchcase(model, pattern)), len(prefer))


def _problem_class(status: int) -> type[UpstreamProblem]:
    is_refusal = 400 <= status < 500 and status != 408  # 408: the provider timed out
    return _PROBLEMS.get(status, UpstreamRefused if is_refusal else UpstreamUnavailable)


async def _read_body(response: httpx2.Response, max_bytes: int) -> tuple[bytes, bool]:
    """Return up to `max_bytes` of the body, and whether that is all of it."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > max_bytes:
            return bytes(content[:max_bytes]), False
    return bytes(content), True


def _plain_text(response: httpx2.Response, content: bytes) -> str:
    """Return the text of an answer that is no JSON, unless it is a page for browsers."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = content.decode(errors="replace").strip()
    return "" if "html" in kind or text.startswith("<") else " ".join(text.split())


def _retry_after(response: httpx2.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return min(float(value), _MAX_RETRY_SECONDS) if re.fullmatch(r"[0-9]{1,9}", value) else None
