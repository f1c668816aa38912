"""Token count of one answer: as the upstream reports it, otherwise estimated from the text's length."""

from roost.drivers.model.chat import ChatRequest, ForwardedRequest, estimate_tokens
from roost.drivers.model.contract import Json
from roost.drivers.model.json_access import as_count, as_list, as_object, as_string


class TokenCount:
    """Token count of a chat completion."""

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._usage: Json = {}
        self._chars = 0

    def add(self, completion: Json) -> None:
        """Add a whole completion or one chunk."""
        self._usage = as_object(completion.get("usage")) or self._usage
        for choice in map(as_object, as_list(completion.get("choices"))):
            content = as_object(choice.get("delta")) or as_object(choice.get("message"))
            self._chars += len(as_string(content.get("content")))
            for call in map(as_object, as_list(content.get("tool_calls"))):
                self._chars += len(as_string(as_object(call.get("function")).get("arguments")))

    @property
    def prompt_tokens(self) -> int:
        if self._usage:
            return as_count(self._usage.get("prompt_tokens"))
        return sum(estimate_tokens(message.text) for message in self._request.messages)

    @property
    def completion_tokens(self) -> int:
        if self._usage:
            return as_count(self._usage.get("completion_tokens"))
        return -(-self._chars // 4)  # about four characters a token, rounded up


class ForwardedTokenCount:
    """Token count of a forwarded request, from the usage of embeddings and of the Responses API."""

    def __init__(self, request: ForwardedRequest) -> None:
        self._input = request.input
        self._usage: Json = {}
        self._chars = 0

    def add(self, answer: Json) -> None:
        """Add a whole answer or one event."""
        response = as_object(answer.get("response")) or answer
        self._usage = as_object(response.get("usage")) or self._usage
        self._chars += len(as_string(answer.get("delta")))

    @property
    def prompt_tokens(self) -> int:
        if self._usage:
            return as_count(self._usage.get("input_tokens", self._usage.get("prompt_tokens")))
        return estimate_tokens(str(self._input or ""))

    @property
    def completion_tokens(self) -> int:
        if self._usage:
            return as_count(self._usage.get("output_tokens"))
        return -(-self._chars // 4)
