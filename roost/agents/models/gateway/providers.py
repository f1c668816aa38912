"""Model providers: protocol, address and preferred models of each.

A provider that is not in the table speaks OpenAI's protocol and needs a base URL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import httpx2

from roost.core import log
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import ModelSettings


@dataclass(frozen=True)
class ProviderEndpoint:
    """Endpoint of a provider: `url` with the version for `openai`, without for `anthropic`; `prefer` in order."""

    url: str
    api: Literal["openai", "anthropic"] = "openai"
    prefer: tuple[str, ...] = ()


PROVIDERS: Mapping[str, ProviderEndpoint] = {
    "anthropic": ProviderEndpoint("https://api.anthropic.com", "anthropic", ("claude-sonnet-*", "claude-*")),
    "openai": ProviderEndpoint(
        "https://api.openai.com/v1", prefer=("gpt-5.[0-9]", "gpt-5", "gpt-4.1", "gpt-4o", "gpt-*")
    ),
    "openrouter": ProviderEndpoint(
        "https://openrouter.ai/api/v1", prefer=("openrouter/auto", "anthropic/claude-sonnet-*")
    ),
    "google": ProviderEndpoint(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        prefer=("models/gemini-*-pro", "models/gemini-*-flash", "models/gemini-*"),
    ),
    "groq": ProviderEndpoint("https://api.groq.com/openai/v1", prefer=("openai/gpt-oss-120b", "llama-*-versatile")),
    "mistral": ProviderEndpoint("https://api.mistral.ai/v1", prefer=("mistral-large-latest", "mistral-medium-latest")),
    "deepseek": ProviderEndpoint("https://api.deepseek.com/v1", prefer=("deepseek-chat", "deepseek-v*-pro")),
    "xai": ProviderEndpoint("https://api.x.ai/v1", prefer=("grok-[0-9]", "grok-[0-9].[0-9]", "grok-[0-9]*")),
    "together": ProviderEndpoint(
        "https://api.together.xyz/v1", prefer=("openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V*")
    ),
    "fireworks": ProviderEndpoint("https://api.fireworks.ai/inference/v1", prefer=("*/deepseek-v*", "*/gpt-oss-120b")),
    "cerebras": ProviderEndpoint("https://api.cerebras.ai/v1", prefer=("gpt-oss-120b",)),
    "moonshot": ProviderEndpoint("https://api.moonshot.ai/v1", prefer=("kimi-k[0-9]*", "kimi-*")),
    "venice": ProviderEndpoint("https://api.venice.ai/api/v1", prefer=("venice-uncensored", "llama-*")),
    "nvidia": ProviderEndpoint(
        "https://integrate.api.nvidia.com/v1", prefer=("nvidia/*nemotron*", "meta/llama-*-instruct")
    ),
    "zai": ProviderEndpoint("https://api.z.ai/api/paas/v4", prefer=("glm-[0-9]*",)),
    "minimax": ProviderEndpoint("https://api.minimax.io/v1"),
    "kimi-coding": ProviderEndpoint("https://api.kimi.com/coding/v1"),
    "synthetic": ProviderEndpoint("https://api.synthetic.new/openai/v1"),
    "xiaomi": ProviderEndpoint("https://api.xiaomimimo.com/v1"),
    "qianfan": ProviderEndpoint("https://qianfan.baidubce.com/v2"),
    "qwen-portal": ProviderEndpoint("https://portal.qwen.ai/v1"),
    "volcengine": ProviderEndpoint("https://ark.cn-beijing.volces.com/api/v3"),
    "byteplus": ProviderEndpoint("https://ark.ap-southeast.bytepluses.com/api/v3"),
    "chutes": ProviderEndpoint("https://llm.chutes.ai/v1"),
    "opencode": ProviderEndpoint("https://opencode.ai/zen/v1"),
    "vercel-ai-gateway": ProviderEndpoint("https://ai-gateway.vercel.sh/v1", prefer=("anthropic/claude-sonnet-*",)),
}
_BEARER_NAMES = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
"""Names of credentials that are bearer tokens."""
_PRINTABLE = re.compile(r"[!-~]+")

_log = log.get_logger(__name__)


def model_settings(provider: str, name: str, value: Sensitive[str], base_url: str | None) -> ModelSettings | None:
    """Return the settings of a provider, or None if the address or the credential is malformed."""
    known = PROVIDERS.get(provider, ProviderEndpoint(""))
    url, key = (base_url or known.url).strip(), Sensitive(value.reveal().strip())
    if not _is_address(url) or not _PRINTABLE.fullmatch(key.reveal()):
        _log.warning("model_provider.skipped", provider=provider, credential=name)
        return None
    return ModelSettings(provider, known.api, url, key, prefer=known.prefer, bearer=name in _BEARER_NAMES)


def _is_address(url: str) -> bool:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    return (
        parsed.scheme in ("http", "https")
        and bool(parsed.host)
        and not (parsed.userinfo or parsed.query or parsed.fragment)
    )
