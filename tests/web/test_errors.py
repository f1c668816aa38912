import json
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from roost.core.problem import InvalidInput, Problem, ProblemKind
from roost.web import errors
from roost.web.schemas import Text
from tests.http.asgi import Sent, call, routed


class NamedBody(BaseModel):
    name: str = Field(max_length=5)
    nick: Annotated[Text, Field(min_length=1, max_length=2)] = "n"
    tags: Annotated[Sequence[Text], Field(max_length=2)] = ()


NO_OBJECT = "The body must be a JSON object, sent with Content-Type: application/json"


def application(error: Exception | None = None) -> FastAPI:
    app = FastAPI()
    errors.install_error_handlers(app)

    @app.post("/v0/things")
    async def make(body: NamedBody) -> str:
        return body.name

    @app.get("/v0/things")
    @app.get("/v3/things")
    async def things() -> str:
        if error is not None:
            raise error
        return "things"

    return app


async def post(body: bytes, kind: str = "application/json") -> Sent:
    headers = [("content-type", kind), ("content-length", str(len(body)))]
    return await call(application(), "/v0/things", method="POST", headers=headers, body=[body])


@pytest.mark.parametrize("kind", list(ProblemKind))
async def test_each_kind_of_problem_has_its_status(kind: ProblemKind) -> None:
    class Trouble(Problem):
        message = "What is wrong"

    Trouble.kind = kind
    sent = await call(application(Trouble(extra={"agent": 1})), "/v0/things")
    assert sent.status == errors.STATUS[kind]
    assert json.loads(sent.body) == {"error": "What is wrong", "agent": 1}
    assert ("www-authenticate" in sent.headers) == (sent.status == 401)


async def test_an_error_has_a_code_and_its_field() -> None:
    class OddShape(InvalidInput):
        field = "shape"

    sent = await call(application(OddShape()), "/v0/things")
    assert (sent.headers["x-error-code"], sent.headers["x-error-field"]) == ("odd_shape", "shape")
    sent = await call(application(OddShape(field="sizes.0.x")), "/v3/things", state=routed("/v3/things"))
    assert (sent.headers["x-error-code"], sent.headers["x-error-field"]) == ("odd_shape", "sizes.0.x")
    sent = await call(application(Problem("What is wrong")), "/v0/things")
    assert (sent.headers["x-error-code"], "x-error-field" in sent.headers) == ("problem", False)


@pytest.mark.parametrize(
    ("hostile", "header"),
    [("a\r\nSet-Cookie: x", "a__Set-Cookie__x"), ("\u202e\U0001f600 ü\0", "_____"), ("x" * 100_000, "x" * 200)],
)
async def test_a_field_at_fault_carries_nothing_hostile(hostile: str, header: str) -> None:
    sent = await call(application(InvalidInput(field=hostile)), "/v0/things")
    assert (sent.status, sent.headers["x-error-field"]) == (400, header)


@pytest.mark.parametrize(
    ("body", "field"),
    [(b"{}", "name"), (b'{"name": "a", "tags": ["a", 7]}', "tags.1"), (b"{", None), (b"[]", None)],
)
async def test_a_malformed_body_has_the_path_of_its_first_field(body: bytes, field: str | None) -> None:
    sent = await post(body)
    assert (sent.headers["x-error-code"], sent.headers.get("x-error-field")) == ("invalid_input", field)


@pytest.mark.parametrize(
    ("method", "path", "code"), [("GET", "/nowhere", "not_found"), ("DELETE", "/v0/things", "method_not_allowed")]
)
async def test_errors_of_the_framework_have_codes_too(method: str, path: str, code: str) -> None:
    assert (await call(application(), path, method=method)).headers["x-error-code"] == code


async def test_a_limit_says_when_to_come_again() -> None:
    class Busy(Problem):
        kind = ProblemKind.LIMITED

    assert (await call(application(Busy(retry_after=2.4)), "/v0/things")).headers["retry-after"] == "3"
    assert (await call(application(Busy(retry_after=0.1)), "/v0/things")).headers["retry-after"] == "1"


async def test_the_storage_api_has_another_form() -> None:
    sent = await call(application(Problem("What is wrong")), "/v3/things", state=routed("/v3/things"))
    assert json.loads(sent.body) == {"error": {"code": 500, "message": "What is wrong"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"name": "abcdef"}', "name: String should have at most 5 characters"),
        (b"{}", "name: Field required"),
        (b'{"name": "a", "nick": ""}', "nick: must have at least 1 character"),
        (b'{"name": "a", "nick": "abc"}', "nick: must have at most 2 characters"),
        (b'{"name": "a", "tags": ["a", "b", "c"]}', "tags: must have at most 2 items"),
        (b"{", "Invalid JSON body"),
        (b"[]", NO_OBJECT),
        (b"", NO_OBJECT),
    ],
)
async def test_a_fault_in_a_body_is_400_and_names_the_field(body: bytes, message: str) -> None:
    sent = await post(body)
    assert sent.status == 400
    assert json.loads(sent.body) == {"error": message}


async def test_json_that_is_sent_as_something_else() -> None:
    """As curl does it with `-d` alone."""
    sent = await post(b'{"name": "a"}', "application/x-www-form-urlencoded")
    assert (sent.status, json.loads(sent.body)) == (400, {"error": NO_OBJECT})


async def test_sent_body_is_never_repeated() -> None:
    sent = await post(b'{"name": "<script>SECRET"}')
    assert b"SECRET" not in sent.body


async def test_json_that_is_nested_too_deeply_is_400() -> None:
    depth = 100_000
    sent = await post(b'{"name": ' + b"[" * depth + b"]" * depth + b"}")
    assert sent.status == 400


async def test_a_number_that_the_reader_gives_up_says_so() -> None:
    sent = await post(b'{"name": ' + b"9" * 5_000 + b"}")
    assert (sent.status, json.loads(sent.body)) == (400, {"error": "Invalid JSON body"})
    assert sent.headers["x-error-detail"] == '"Invalid JSON body"'


async def test_a_reader_that_gives_up_on_depth_is_400() -> None:
    sent = await call(application(RecursionError("maximum recursion depth exceeded")), "/v0/things")
    assert sent.status == 400
    assert json.loads(sent.body) == {"error": "Invalid JSON body"}


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("DELETE", "/v0/things", 405)])
async def test_the_frameworks_own_refusals_have_the_form_too(method: str, path: str, status: int) -> None:
    sent = await call(application(), path, method=method)
    assert sent.status == status
    assert set(json.loads(sent.body)) == {"error"}
    assert ("allow" in sent.headers) == (status == 405)


async def test_a_refused_method_is_told_all_that_the_path_takes() -> None:
    sent = await call(application(), "/v0/things", method="DELETE")
    assert sent.headers["allow"] == "GET, HEAD, POST"
    assert (await call(application(), "/v3/things", method="DELETE")).headers["allow"] == "GET, HEAD"


async def test_an_unexpected_error_is_plain_and_reaches_the_logger() -> None:
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {"type": "http", "method": "GET", "path": "/v0/things", "query_string": b"", "headers": []}
    with pytest.raises(ValueError, match="a secret reason"):
        await application(ValueError("a secret reason"))(scope, receive, send)
    assert messages[0]["status"] == 500
    assert messages[1]["body"] == b'{"error":"Internal error"}'


async def test_text_that_no_answer_can_repeat() -> None:
    app = application(InvalidInput("Unknown scope: \ud800"))
    sent = await call(app, "/v3/things", state=routed("/v3/things"))
    assert (sent.status, json.loads(sent.body)) == (400, {"error": {"code": 400, "message": "Unknown scope: ?"}})
