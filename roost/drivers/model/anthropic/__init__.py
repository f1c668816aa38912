"""Anthropic's Messages API, translated from and to OpenAI's format."""

from roost.drivers.model.anthropic.driver import AnthropicUpstream

__all__ = ["AnthropicUpstream"]
