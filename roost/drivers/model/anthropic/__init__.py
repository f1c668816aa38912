"""Anthropic's Messages API behind OpenAI's form: the endpoint, and the translation of requests and answers."""

from roost.drivers.model.anthropic.driver import Anthropic

__all__ = ["Anthropic"]
