"""SQL of scripts."""

from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roost.agents.workspace.scripts.model import ScriptState, ScriptStatus
from roost.core.db import Connection, UtcTime, insert_or_ignore, metadata, read_record

agent_scripts = sa.Table(
    "agent_scripts",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("script", sa.String(16), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("exit_code", sa.Integer),
    sa.Column("digest", sa.String(64)),
    sa.Column("started_at", UtcTime),
    sa.Column("finished_at", UtcTime),
)
_s = agent_scripts.c


def list_scripts(connection: Connection, agent_id: str) -> dict[str, ScriptStatus]:
    """Return the configured scripts by name."""
    rows = connection.execute(agent_scripts.select().where(_s.agent_id == agent_id))
    return {row.script: read_record(ScriptStatus, row, state=ScriptState(row.state)) for row in rows}


def save_script(connection: Connection, agent_id: str, name: str, script: ScriptStatus) -> bool:
    """Save a script; return False if the agent no longer exists."""
    if script.state is ScriptState.NOT_CONFIGURED:
        connection.execute(agent_scripts.delete().where(_s.agent_id == agent_id, _s.script == name))
        return True
    values = {**asdict(script), "state": script.state.value}
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](agent_scripts)
    row = insert.values(agent_id=agent_id, script=name, **values)
    return insert_or_ignore(connection, row.on_conflict_do_update(index_elements=[_s.agent_id, _s.script], set_=values))
