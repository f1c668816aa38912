"""Anthropic's Messages API behind OpenAI's form: the endpoint, and the translation of requests and answers."""

from roost.drivers.model.anthropic.driver import AnthropicUpstream

__all__ = ["AnthropicUpstream"]
