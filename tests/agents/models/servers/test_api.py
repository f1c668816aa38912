import pytest
from pydantic import ValidationError

from roost.agents.models.gateway.model import ModelInfo, ModelOffer
from roost.agents.models.servers.api import AgentModelList, ModelServerList, UseModelServerRequest
from roost.agents.models.servers.service import ModelServer, ModelServerAddress


def test_servers_that_were_not_looked_for_are_told_from_none() -> None:
    assert not ModelServerList.from_servers(None).available
    assert ModelServerList.from_servers([]).available
    server = ModelServer(ModelServerAddress("llamacpp", 8080), ["qwen"])
    assert ModelServerList.from_servers([server]).model_dump(by_alias=True)["servers"] == [
        {"provider": "llamacpp", "label": "llama.cpp", "baseUrl": "http://127.0.0.1:8080/v1", "models": ["qwen"]}
    ]


@pytest.mark.parametrize("model", ["", "two words", "a\nb", "a" * 151, "\u202eqwen"])
def test_model_ids_have_one_form(model: str) -> None:
    with pytest.raises(ValidationError):
        UseModelServerRequest(provider="ollama", model=model)


def test_an_incomplete_offer_says_so() -> None:
    listed = AgentModelList.from_offer(ModelOffer([ModelInfo("ollama/qwen3:8b", "ollama")], ["it refuses connections"]))
    assert not listed.complete
    assert [(one.id, one.provider) for one in listed.models] == [("ollama/qwen3:8b", "ollama")]
