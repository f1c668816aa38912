"""Anthropic's Messages API, translated from and to OpenAI's format."""
