"""Messages of a chat, and the limits of chats."""

from enum import StrEnum
from typing import NamedTuple

MESSAGES_LIMIT = 1000
TEXT_LIMIT = 1_000_000
"""Maximum number of characters of one message."""


class ChatRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class ConversationMessage(NamedTuple):
    role: ChatRole
    text: str
