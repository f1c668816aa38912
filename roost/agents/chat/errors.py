"""Errors of chats with agents."""

from roost.core.problem import ServiceUnavailable, TooManyRequests


class TooManyChats(TooManyRequests):
    message = "Too many answers of this agent are being streamed"


class AgentUnreachable(ServiceUnavailable):
    """The agent's gateway did not accept a connection, or ended it."""

    message = "The agent does not answer"


class AnswerFailed(ServiceUnavailable):
    """The gateway refused the chat, or its answer is no stream of chat completions."""

    message = "The agent could not answer"
