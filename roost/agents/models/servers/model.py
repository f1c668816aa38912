"""Kinds of model servers, their addresses on this machine, and what they serve."""

from collections.abc import Sequence
from dataclasses import dataclass

from roost.core.problem import AccessDenied, NotFound, ResourceConflict

ASK_SECONDS = 2.0
"""Time for a server on this machine to list its models."""
MODELS_LIMIT = 100
MODEL_ID = r"[!-~]{1,150}"
"""Form of the ids that are offered; longer and unprintable ones are left out."""
PLACEHOLDER_KEY = "local"
"""Value of the secret that stands for a server's key; these servers ask for none."""
LABELS = {"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp"}


@dataclass(frozen=True)
class ModelServerAddress:
    """A model server's usual address; `provider` is its id in `LABELS` and `agents/setup/secrets/providers.py`."""

    provider: str
    port: int

    @property
    def label(self) -> str:
        return LABELS[self.provider]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def key_name(self) -> str:
        return f"{self.provider.upper()}_API_KEY"

    @property
    def url_name(self) -> str:
        return f"{self.provider.upper()}_BASE_URL"


@dataclass(frozen=True)
class ModelServer:
    """A model server that answered, with the ids of its models."""

    address: ModelServerAddress
    models: Sequence[str]


class ModelServersClosed(AccessDenied):
    """The caller is not the operator, other machines can reach the server, or `model_servers` is `none`."""

    message = (
        "Model servers of this machine are for owners and unlimited keys of the tenant 'default' only, on a server "
        "that no other machine reaches (domain localhost, no TLS) and whose setting model_servers is not none; else "
        "connect one by ROOST_MODEL_URL"
    )


class ModelServerNotFound(NotFound):
    message = "No model server answers there"


class ServerModelNotFound(NotFound):
    message = "The model server does not have this model"


class ModelAddressTaken(ResourceConflict):
    """The tenant's variable with the server's address has another value."""

    message = "The variable for the model server's address has another value"
