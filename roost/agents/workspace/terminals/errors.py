"""Errors of terminals."""

from roost.core.problem import InvalidInput, NotFound, Problem, ResourceConflict, TooManyRequests


class InvalidTerminalMessage(InvalidInput):
    message = "Invalid message"


class TerminalSessionNotFound(NotFound):
    """The session has ended, or the agent's container was replaced."""

    message = "Terminal session not found"


class TerminalSessionTaken(ResourceConflict):
    message = "Another client has connected to the terminal session"


class TooManyTerminals(TooManyRequests):
    message = "The agent has too many open terminals"


class TerminalUnsupported(ResourceConflict):
    """The container runs since before an update of the server that brought terminals."""

    message = "The agent's container is older than the server: stop the server with its agents, and start it again"


class TerminalFailed(Problem):
    message = "The terminal failed"
