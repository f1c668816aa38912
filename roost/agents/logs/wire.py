"""Shape of the logs (contract: last 100 lines as a single string)."""

from roost.web.wire import Wire


class LogText(Wire):
    logs: str
