"""`roost models`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json

import pytest

from tests.cli.terminal import FakeServer

OLLAMA = {
    "provider": "ollama",
    "label": "Ollama",
    "baseUrl": "http://127.0.0.1:11434/v1",
    "models": ["qwen3:8b", "\x1b[1mgemma"],
}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    return server


def test_list_shows_models_and_problems(ada: FakeServer) -> None:
    problems = ["The model provider openai does not list its models: it refuses connections"]
    models = {"models": [{"id": "ollama/qwen3:8b", "provider": "ollama"}], "complete": False, "problems": problems}
    ada.answers["GET /v0/agents/a1/models"] = (200, models)
    listed = ada.run("models", "list", "Ada")
    assert listed.stdout.splitlines()[1].split() == ["ollama/qwen3:8b", "ollama"]
    assert "openai does not list its models: it refuses connections." in " ".join(listed.stderr.split())
    assert json.loads(ada.run("models", "list", "Ada", "-o", "json").stdout) == models


def test_connect_stores_a_key_that_works(ada: FakeServer) -> None:
    owner, other = {"agentId": "a1", "name": "Ada"}, {"agentId": "a2", "name": "Bob"}
    secret = {"id": "s1", "name": "OPENAI_API_KEY", "agents": [owner]}
    ada.answers["GET /v0/secrets"] = (200, {"secrets": [secret, {"id": "s2", "name": "TOKEN", "agents": [other]}]})
    ada.answers["PUT /v0/agents/a1/model-key"] = (200, {"success": True, "secret": "OPENAI_API_KEY", "models": ["m"]})
    connected = ada.run("models", "connect", "Ada", "openai", input="sk-1\n")
    assert connected.stdout == "The key works, and is stored as OPENAI_API_KEY. 1 models, first m.\n"
    secret["agents"] = [owner, other]
    asked = ada.run("models", "connect", "Ada", "openai", input="sk-2\n")
    assert asked.exit_code != 0
    assert "Bob" in asked.output
    assert ada.run("models", "connect", "Ada", "openai", "--yes", input="sk-3\n").exit_code == 0
    assert ada.bodies("PUT /v0/agents/a1/model-key") == [
        {"provider": "openai", "key": "sk-1", "replaceFor": []},
        {"provider": "openai", "key": "sk-3", "replaceFor": ["a2"]},
    ]
    unknown = ada.run("models", "connect", "Ada", "opanai")
    assert (unknown.exit_code, "openai" in unknown.stderr) == (5, True)


def test_servers_lists_model_servers(server: FakeServer) -> None:
    server.answers["GET /v0/model-servers"] = (200, {"available": True, "servers": [OLLAMA]})
    _, first, second = server.run("models", "servers").stdout.splitlines()
    assert first.split() == ["Ollama", "ollama", "qwen3:8b", "http://127.0.0.1:11434/v1"]
    assert second.split()[2] == "gemma"
    assert json.loads(server.run("models", "servers", "-o", "json").stdout)["servers"] == [OLLAMA]


@pytest.mark.parametrize(("available", "words"), [(True, "ollama serve"), (False, "ROOST_MODEL_URL")])
def test_missing_servers_are_explained(server: FakeServer, available: bool, words: str) -> None:
    server.answers["GET /v0/model-servers"] = (200, {"available": available, "servers": []})
    listed = server.run("models", "servers")
    assert (listed.exit_code, words in listed.stderr) == (0, True)


def test_use_chooses_a_local_model(ada: FakeServer) -> None:
    ada.answers["PUT /v0/agents/a1/model-server"] = (200, {"success": True, "model": "ollama/hf.co/a/b:Q4"})
    used = ada.run("models", "use", "Ada", "ollama/hf.co/a/b:Q4")
    assert used.stdout == "The agent now uses ollama/hf.co/a/b:Q4.\n"
    assert ada.bodies("PUT /v0/agents/a1/model-server") == [{"provider": "ollama", "model": "hf.co/a/b:Q4"}]
    ada.answers["PUT /v0/agents/a1/model-server"] = (404, {"error": "Ollama does not answer"})
    missing = ada.run("models", "use", "Ada", "ollama/x")
    assert (missing.exit_code, missing.stderr) == (5, "Error: Ollama does not answer\n")
