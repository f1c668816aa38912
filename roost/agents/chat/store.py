"""SQL of conversations: their first questions, and the answers that are being written.

The messages are the engine's. An answer that has begun and has no end, in a server that does not write it, was cut off
from its readers by a restart.
"""

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from roost.core import clock
from roost.core.db import Connection, UtcTime, insert_or_ignore, metadata

MAX_QUESTIONS = 200
"""Conversations of an agent whose first questions are kept, the newest; engines list fewer."""

conversations = sa.Table(
    "conversations",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("question", sa.String(200), nullable=False),
    sa.Column("answering_since", UtcTime),
)
_c = conversations.c


def begin_answer(connection: Connection, agent_id: str, conversation_id: str, question: str) -> None:
    """Record that an answer is being written; `question` is the conversation's first one, empty if it is not known."""
    values = {"answering_since": clock.utc_now()}
    row = sa.and_(_c.agent_id == agent_id, _c.id == conversation_id)
    if connection.execute(conversations.update().where(row).values(values)).rowcount:
        return
    new = conversations.insert().values(agent_id=agent_id, id=conversation_id, question=question, **values)
    insert_or_ignore(connection, new)
    newest = sa.select(_c.id).where(_c.agent_id == agent_id).order_by(_c.id.desc()).limit(MAX_QUESTIONS)
    connection.execute(conversations.delete().where(_c.agent_id == agent_id, _c.id.not_in(newest)))


def end_answer(connection: Connection, agent_id: str, conversation_id: str) -> None:
    row = sa.and_(_c.agent_id == agent_id, _c.id == conversation_id)
    connection.execute(conversations.update().where(row).values(answering_since=None))


def list_questions(connection: Connection, agent_id: str) -> Mapping[str, str]:
    """Return the first questions that are known, by conversation."""
    query = sa.select(_c.id, _c.question).where(_c.agent_id == agent_id, _c.question != "")
    return {row.id: row.question for row in connection.execute(query)}


def get_answering_since(connection: Connection, agent_id: str, conversation_id: str) -> datetime | None:
    """Return since when an answer is being written, None if the last one has ended."""
    query = sa.select(_c.answering_since).where(_c.agent_id == agent_id, _c.id == conversation_id)
    return connection.execute(query).scalar()
