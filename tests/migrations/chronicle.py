"""What a deployment had in its tables at the revision that brought each: rows as the code of that time wrote them.

A migration that brings a table or a column wants rows here too, with what is at its edges: nothing, the longest, the
largest, what is deleted, what is only half done. Rows are plain values: nothing here follows the code as it changes.
"""

from collections.abc import Mapping, Sequence

from tests.migrations import early, wing
from tests.migrations.ground import Row

ROWS: Mapping[str, Sequence[Row]] = {**early.ROWS, **wing.ROWS}
