"""Shapes of scripts; what the contract leaves open follows the reference service's words for their states."""

from roost.web.wire import Wire


class Launched(Wire):
    success: bool = True
    message: str
