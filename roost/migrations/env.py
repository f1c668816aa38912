"""What Alembic runs for a command; the connection comes from `upgrade`, already inside its transaction."""

from alembic import context

from roost.core.db import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
