"""Providers and the names of their credentials: data for the rules in `model.py`.

Two names of one provider on one agent are a conflict, because it would be ambiguous which one to use. Credentials of a
model provider stay on the host, where the model gateway uses them. `GH_TOKEN` and `GITHUB_TOKEN` are in no row: they
are general credentials that also work for a model service.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ProviderSecretNames:
    """Names of a provider's credentials in order of precedence; `models` says whether it serves chat models.

    label, key_prefixes: of a provider whose key a person may paste, its name, and how its keys begin.
    """

    id: str
    names: Sequence[str]
    models: bool = True
    label: str | None = None
    key_prefixes: Sequence[str] = ()

    @property
    def usual_name(self) -> str:
        """Name under which a new key is stored."""
        return next((name for name in self.names if name.endswith("_API_KEY")), self.names[0])

    @property
    def base_urls(self) -> Sequence[str]:
        """Names of variables that override the provider's address: `OPENAI_BASE_URL` for `OPENAI_API_KEY`."""
        return list(dict.fromkeys(f"{_KIND.sub('', name)}_BASE_URL" for name in self.names))


_KIND = re.compile(r"_(API_KEY|OAUTH_TOKEN|AUTH_TOKEN|HUB_TOKEN|TOKEN)$")

PROVIDERS: Sequence[ProviderSecretNames] = (
    ProviderSecretNames(
        "anthropic",
        ("ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        label="Anthropic",
        key_prefixes=("sk-ant-",),
    ),
    ProviderSecretNames(
        "openai",
        ("OPENAI_API_KEY", "OPENAI_OAUTH_TOKEN"),
        label="OpenAI",
        key_prefixes=("sk-proj-", "sk-svcacct-", "sk-"),
    ),
    ProviderSecretNames("azure-openai", ("AZURE_OPENAI_API_KEY",)),
    ProviderSecretNames("google", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), label="Google Gemini", key_prefixes=("AIza",)),
    ProviderSecretNames("google-vertex", ("GOOGLE_CLOUD_API_KEY",), models=False),
    ProviderSecretNames("github-copilot", ("COPILOT_GITHUB_TOKEN",), models=False),
    ProviderSecretNames("openrouter", ("OPENROUTER_API_KEY",), label="OpenRouter", key_prefixes=("sk-or-",)),
    ProviderSecretNames("groq", ("GROQ_API_KEY",), label="Groq", key_prefixes=("gsk_",)),
    ProviderSecretNames("cerebras", ("CEREBRAS_API_KEY",), label="Cerebras", key_prefixes=("csk-",)),
    ProviderSecretNames("xai", ("XAI_API_KEY",), label="xAI", key_prefixes=("xai-",)),
    ProviderSecretNames("mistral", ("MISTRAL_API_KEY",), label="Mistral"),
    ProviderSecretNames("deepseek", ("DEEPSEEK_API_KEY",), label="DeepSeek"),
    ProviderSecretNames("together", ("TOGETHER_API_KEY",), label="Together AI", key_prefixes=("tgp_",)),
    ProviderSecretNames("fireworks", ("FIREWORKS_API_KEY",)),
    ProviderSecretNames("moonshot", ("MOONSHOT_API_KEY",)),
    ProviderSecretNames("kimi-coding", ("KIMI_API_KEY", "KIMICODE_API_KEY")),
    ProviderSecretNames("nvidia", ("NVIDIA_API_KEY",)),
    ProviderSecretNames("venice", ("VENICE_API_KEY",)),
    ProviderSecretNames("synthetic", ("SYNTHETIC_API_KEY",)),
    ProviderSecretNames("xiaomi", ("XIAOMI_API_KEY",)),
    ProviderSecretNames("zai", ("ZAI_API_KEY", "Z_AI_API_KEY")),
    ProviderSecretNames("minimax", ("MINIMAX_OAUTH_TOKEN", "MINIMAX_API_KEY")),
    ProviderSecretNames("qianfan", ("QIANFAN_API_KEY",)),
    ProviderSecretNames("qwen-portal", ("QWEN_OAUTH_TOKEN", "QWEN_PORTAL_API_KEY")),
    ProviderSecretNames("volcengine", ("VOLCANO_ENGINE_API_KEY",)),
    ProviderSecretNames("byteplus", ("BYTEPLUS_API_KEY",)),
    ProviderSecretNames("chutes", ("CHUTES_OAUTH_TOKEN", "CHUTES_API_KEY")),
    ProviderSecretNames("opencode", ("OPENCODE_API_KEY", "OPENCODE_ZEN_API_KEY")),
    ProviderSecretNames("kilocode", ("KILOCODE_API_KEY",)),
    ProviderSecretNames("vercel-ai-gateway", ("AI_GATEWAY_API_KEY",)),
    ProviderSecretNames("cloudflare-ai-gateway", ("CLOUDFLARE_AI_GATEWAY_API_KEY",)),
    ProviderSecretNames("litellm", ("LITELLM_API_KEY",)),
    ProviderSecretNames("ollama", ("OLLAMA_API_KEY",)),
    ProviderSecretNames("lmstudio", ("LMSTUDIO_API_KEY",)),
    ProviderSecretNames("llamacpp", ("LLAMACPP_API_KEY",)),
    ProviderSecretNames("vllm", ("VLLM_API_KEY",)),
    ProviderSecretNames("huggingface", ("HUGGINGFACE_HUB_TOKEN", "HF_TOKEN"), models=False),
    ProviderSecretNames("voyage", ("VOYAGE_API_KEY",), models=False),
    ProviderSecretNames("deepgram", ("DEEPGRAM_API_KEY",), models=False),
)

PROVIDER_OF: Mapping[str, ProviderSecretNames] = {name: provider for provider in PROVIDERS for name in provider.names}
HOST_ONLY_NAMES: frozenset[str] = frozenset(
    name for provider in PROVIDERS if provider.models for name in (*provider.names, *provider.base_urls)
)
"""Names that stay on the host and never enter an agent's container."""
