import json

from roost.agents.models.gateway.errors import UnknownModel
from roost.agents.models.gateway.model import ModelInfo
from roost.agents.models.gateway.schemas import OpenAIModel, OpenAIModelList, encode_json, error_object, format_event
from roost.drivers.model.contract import UpstreamLimited


def test_a_model_has_the_form_that_openais_clients_read() -> None:
    one = {"id": "a/b", "object": "model", "created": 0, "owned_by": "a"}
    assert OpenAIModel.from_model(ModelInfo("a/b", "a")).model_dump() == one
    assert OpenAIModelList.from_models([ModelInfo("a/b", "a")]).model_dump() == {"object": "list", "data": [one]}


def test_whatever_text_an_upstream_sends_can_be_passed_on() -> None:
    value = {"text": "ü \ud83d \u2028 \n\n data: x"}
    line = format_event(value)
    assert line.isascii()
    assert line.count(b"\n") == 2
    assert json.loads(line.removeprefix(b"data: ")) == value
    assert encode_json({"a": [1, None]}) == b'{"a":[1,null]}'


def test_an_error_in_a_stream_looks_like_one_before_it() -> None:
    assert error_object(UnknownModel("x"))["error"] == {
        "message": "The model `x` does not exist",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    }
    assert error_object(UpstreamLimited("slow down"))["error"]["type"] == "rate_limit_error"
