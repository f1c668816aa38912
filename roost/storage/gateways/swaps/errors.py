"""Errors of hot swaps; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound


class InvalidSwap(InvalidInput):
    message = "Invalid swap"


class SwapNotFound(NotFound):
    message = "CID does not have history"
