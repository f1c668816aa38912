"""Try a key of a model provider as the agent would use it, and replace the present one only if it works."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from roost.agents.models.gateway.model import AgentProviders
from roost.agents.models.gateway.providers import model_settings
from roost.agents.registry.repository import AgentProfiles
from roost.agents.setup.secrets.model import ProviderKey, UnreadableSecret
from roost.agents.setup.secrets.provider_keys import ProviderKeys, ProviderKeyService
from roost.core.problem import InvalidInput, ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.drivers.model.chat import ChatMessage, ChatRequest
from roost.drivers.model.contract import (
    ModelUpstream,
    UpstreamDenied,
    UpstreamProblem,
    UpstreamRefused,
    UpstreamUnavailable,
)

TRIAL_SECONDS = 15.0
MODELS_LIMIT = 100
_SHORT_ANSWER_TOKENS = 16


class ModelKeyRefused(InvalidInput):
    message = "The model provider refuses this key"


class ModelKeyUntried(ServiceUnavailable):
    """The provider was not reached, or answered nonsense, so that the key may work or not."""

    message = "The key could not be tried"


class ModelKeyTrial:
    def __init__(self, keys: ProviderKeys, providers: AgentProviders) -> None:
        self._keys = keys
        self._providers = providers

    async def check_replacement(self, agent_id: str, name: str, key: Sensitive[str]) -> None:
        """Raise ModelKeyRefused if the provider refuses a new key, for the secret `name` that an agent uses.

        A provider that cannot be reached says nothing about the key, which an owner may have to replace all the same.
        """
        with suppress(ModelKeyUntried, UnreadableSecret):
            for present in await self._keys.list(agent_id):
                if present.name == name:
                    await self.try_key(agent_id, replace(present, value=key))

    async def try_key(self, agent_id: str, key: ProviderKey) -> Sequence[str]:
        """List the models with a key, and let one answer, because some providers list them without a key."""
        settings = model_settings(key.provider, key.name, key.value, key.base_url)
        if settings is None:
            raise ModelKeyRefused(f"key: {key.name} is empty, no address, or has characters that no provider uses")
        upstream = self._providers.connect(agent_id, settings)
        try:
            async with asyncio.timeout(TRIAL_SECONDS):
                models = await upstream.list_models()
                await _answer_briefly(upstream, models)
        except UpstreamDenied as problem:
            raise ModelKeyRefused(f"{problem.message}. Nothing was changed") from problem
        except UpstreamProblem as problem:
            raise ModelKeyUntried(f"The key was not tried: {problem.message}. Nothing was changed") from problem
        except TimeoutError:
            message = f"The key was not tried: {key.provider} did not answer within {TRIAL_SECONDS:g} seconds"
            raise ModelKeyUntried(f"{message}. Nothing was changed") from None
        finally:
            await upstream.close()
        return models


class ModelKeyService:
    def __init__(self, keys: ProviderKeyService, trial: ModelKeyTrial, profiles: AgentProfiles) -> None:
        self._keys = keys
        self._trial = trial
        self._profiles = profiles

    async def use(
        self, tenant_id: str, agent_id: str, provider: str, key: Sensitive[str], replace_for: frozenset[str]
    ) -> tuple[str, Sequence[str]]:
        """Try the key, store it, attach it to the agent, and restart a gateway that runs.

        Returns the name of the secret that has the key, and models that the provider lists, preferred ones first.

        `replace_for` has the ids of other agents that use the present key and get the new one. Raises SecretShared,
        ModelKeyRefused, ModelKeyUntried, AgentNotFound, the errors of secrets, and those of a restart.
        """
        present = await self._keys.find(tenant_id, agent_id, provider, replace_for)
        tried = ProviderKey(provider, present.name, Sensitive(key.reveal().strip()), present.base_url)
        models = await self._trial.try_key(agent_id, tried)
        await self._keys.put(tenant_id, agent_id, tried, replace_for)
        await self._profiles.update(agent_id, lambda profile: profile, restart=True)
        return present.name, models[:MODELS_LIMIT]


async def _answer_briefly(upstream: ModelUpstream, models: Sequence[str]) -> None:
    """Let the preferred model answer. Raises UpstreamUnavailable.

    What the provider refuses for another reason than the key (a model that only embeds, a parameter, a rate) shows
    that it read the key.
    """
    if not models:
        raise UpstreamUnavailable(f"{upstream.name} lists no models for this key")
    request = ChatRequest(
        model=models[0], messages=[ChatMessage(role="user", content="Hello")], max_tokens=_SHORT_ANSWER_TOKENS
    )
    with suppress(UpstreamRefused):
        await upstream.complete(request)
