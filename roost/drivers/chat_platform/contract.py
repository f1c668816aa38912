"""The contract of a messenger: a platform that is asked once, before a bot's tokens are kept, whether it knows them.

Agents talk to platforms by themselves; nothing of a conversation passes here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive


@dataclass(frozen=True)
class BotTokens:
    """app: Slack's second token."""

    bot: Sensitive[str]
    app: Sensitive[str] | None = None


class TokenRejected(Problem):
    """The platform does not know a token. The message says which, and why in the platform's words, never the token."""

    kind = ProblemKind.INVALID
    message = "The platform rejected the bot token"


class MessengerUnreachable(Problem):
    """The platform could not be asked, or has troubles of its own: nothing is known about the tokens."""

    kind = ProblemKind.UNAVAILABLE
    message = "The platform could not be asked"


class ChatPlatform(ABC):
    """One platform, under the `name` of its channel."""

    name: ClassVar[str]

    @abstractmethod
    async def check(self, tokens: BotTokens) -> str | None:
        """The bot's user name, if the platform tells it, within 5 s. Changes nothing at the platform.

        Raises TokenRejected, MessengerUnreachable.
        """
