"""SQL of one-time sign-in links."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, metadata

sign_in_links = sa.Table(
    "sign_in_links",
    metadata,
    sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    sa.Column(
        "agent_id",
        sa.String(36),
        sa.ForeignKey("gateway_tokens.agent_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    sa.Column("token_digest", sa.LargeBinary(32), nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
)


def add_link(connection: Connection, digest: bytes, agent_id: str, token_digest: bytes, expires_at: datetime) -> None:
    row = {"digest": digest, "agent_id": agent_id, "token_digest": token_digest, "expires_at": expires_at}
    connection.execute(sign_in_links.insert().values(row))


def remove_old_links(connection: Connection, agent_id: str, keep: int, now: datetime) -> None:
    """Remove the expired links of all agents, and those of this agent except the newest `keep`."""
    connection.execute(sign_in_links.delete().where(sign_in_links.c.expires_at <= now))
    own = sa.select(sign_in_links.c.digest).where(sign_in_links.c.agent_id == agent_id)
    surplus = own.order_by(sign_in_links.c.expires_at.desc(), sign_in_links.c.digest).offset(keep)
    connection.execute(sign_in_links.delete().where(sign_in_links.c.digest.in_(surplus)))


def has_link(connection: Connection, digest: bytes) -> bool:
    query = sa.select(sign_in_links.c.agent_id).where(sign_in_links.c.digest == digest)
    return connection.execute(query).first() is not None


def take_link(connection: Connection, digest: bytes, agent_id: str, now: datetime) -> bytes | None:
    """Remove a valid link and return the digest of the gateway token it was made for, None if there is none.

    One of several concurrent transactions gets it.
    """
    is_valid = (
        sign_in_links.c.digest == digest,
        sign_in_links.c.agent_id == agent_id,
        sign_in_links.c.expires_at > now,
    )
    query = sign_in_links.delete().where(*is_valid).returning(sign_in_links.c.token_digest)
    return connection.execute(query).scalar_one_or_none()
