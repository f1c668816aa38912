"""Errors of chats with agents."""

from roost.core.problem import NotFound, ResourceConflict, ServiceUnavailable, TooManyRequests


class TooManyChats(TooManyRequests):
    message = "Too many answers of this agent are being streamed"


class AgentUnreachable(ServiceUnavailable):
    """The agent's gateway did not accept a connection, or ended it."""

    message = "The agent does not answer"


class AnswerFailed(ServiceUnavailable):
    """The gateway refused the chat, or its answer is no stream of chat completions."""

    message = "The agent could not answer"


class ConversationNotFound(NotFound):
    message = "Conversation not found"


class ConversationBusy(ResourceConflict):
    message = "The agent still answers the last message of this conversation"


class ConversationsUnsupported(NotFound):
    message = "This agent's engine stores no conversations"
