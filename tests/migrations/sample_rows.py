"""Rows of a deployment at the revision that added each table, as the code of that time wrote them.

A migration that adds a table or a column needs rows here, with the edge cases: empty, longest, largest, deleted,
unfinished. Rows are plain values, so that they do not follow changes of the code.
"""

from collections.abc import Mapping, Sequence

from tests.migrations import actor_rows, agent_rows, payment_rows, session_rows, storage_rows
from tests.migrations.row_values import Row

ROWS: Mapping[str, Sequence[Row]] = {
    **agent_rows.ROWS,
    **storage_rows.ROWS,
    **payment_rows.ROWS,
    **session_rows.ROWS,
    **actor_rows.ROWS,
}
