"""Token count of one answer: as the upstream reports it, otherwise estimated from the text's length."""

from roost.drivers.model import json_access
from roost.drivers.model.chat import ChatRequest, ForwardedRequest, estimate_tokens
from roost.drivers.model.contract import Json


class TokenCount:
    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._usage: Json = {}
        self._completion_chars = 0

    def add(self, completion: Json) -> None:
        """Add a whole completion or one chunk."""
        self._usage = json_access.as_object(completion.get("usage")) or self._usage
        for choice in json_access.as_list(completion.get("choices")):
            content = json_access.as_object(json_access.as_object(choice).get("delta")) or json_access.as_object(
                json_access.as_object(choice).get("message")
            )
            self._completion_chars += len(json_access.as_string(content.get("content")))
            for call in json_access.as_list(content.get("tool_calls")):
                self._completion_chars += len(
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
        return -(-self._completion_chars // 4)


class ForwardedTokenCount:
    """Token count of a forwarded request, from the usage of embeddings and of the Responses API."""

    def __init__(self, request: ForwardedRequest) -> None:
        self._input = request.input
        self._usage: Json = {}
        self._delta_chars = 0

    def add(self, answer: Json) -> None:
        """Add a whole answer or one event."""
        response = json_access.as_object(answer.get("response")) or answer
        self._usage = json_access.as_object(response.get("usage")) or self._usage
        self._delta_chars += len(json_access.as_string(answer.get("delta")))

    @property
    def prompt_tokens(self) -> int:
        if self._usage:
            return json_access.as_count(self._usage.get("input_tokens", self._usage.get("prompt_tokens")))
        return estimate_tokens(str(self._input or ""))

    @property
    def completion_tokens(self) -> int:
        if self._usage:
            return json_access.as_count(self._usage.get("output_tokens"))
        return -(-self._delta_chars // 4)
