"""Counts the tokens of one answer: as the upstream says; where it does not or was cut off, by the text's length."""

from roost.drivers.model import json_access
from roost.drivers.model.chat import ChatRequest, estimate_tokens
from roost.drivers.model.contract import Json


class TokenCount:
    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._usage: Json = {}
        self._answered = 0

    def see(self, answer: Json) -> None:
        """A whole answer, or one chunk of it."""
        self._usage = json_access.as_object(answer.get("usage")) or self._usage
        for choice in json_access.as_list(answer.get("choices")):
            said = json_access.as_object(json_access.as_object(choice).get("delta")) or json_access.as_object(
                json_access.as_object(choice).get("message")
            )
            self._answered += len(json_access.as_string(said.get("content")))
            for call in json_access.as_list(said.get("tool_calls")):
                self._answered += len(
                    json_access.as_string(
                        json_access.as_object(json_access.as_object(call).get("function")).get("arguments")
                    )
                )

    @property
    def prompt_tokens(self) -> int:
        if self._usage:
            return json_access.as_count(self._usage.get("prompt_tokens"))
        return sum(estimate_tokens(message.text) for message in self._request.messages)

    @property
    def completion_tokens(self) -> int:
        if self._usage:
            return json_access.as_count(self._usage.get("completion_tokens"))
        return -(-self._answered // 4)
