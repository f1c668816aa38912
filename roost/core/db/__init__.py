"""The database: short transactions over SQLite or PostgreSQL, with SQLAlchemy Core."""

from sqlalchemy import Connection as Connection

from roost.core.db.change_listener import ChangeListener as ChangeListener
from roost.core.db.changes import DataChange as DataChange
from roost.core.db.changes import assign_tenant as assign_tenant
from roost.core.db.changes import record_change as record_change
from roost.core.db.changes import take_changes as take_changes
from roost.core.db.database import Database as Database
from roost.core.db.database import DatabaseUnavailable as DatabaseUnavailable
from roost.core.db.database import metadata as metadata
from roost.core.db.database import publish_on_commit as publish_on_commit
from roost.core.db.database import read_database_time as read_database_time
from roost.core.db.database import write_change as write_change
from roost.core.db.leased_task import LeasedTask as LeasedTask
from roost.core.db.notifications import ANY_TOPIC as ANY_TOPIC
from roost.core.db.records import PreparedQuery as PreparedQuery
from roost.core.db.records import insert_many as insert_many
from roost.core.db.records import insert_or_ignore as insert_or_ignore
from roost.core.db.records import page_by_creation as page_by_creation
from roost.core.db.records import read_one as read_one
from roost.core.db.records import read_record as read_record
from roost.core.db.records import record_values as record_values
from roost.core.db.records import split_values as split_values
from roost.core.db.records import update_or_ignore as update_or_ignore
from roost.core.db.records import without_index as without_index
from roost.core.db.types import ActorText as ActorText
from roost.core.db.types import IdQuery as IdQuery
from roost.core.db.types import JsonText as JsonText
from roost.core.db.types import UtcTime as UtcTime
from roost.core.db.usage_exchange import UsageExchange as UsageExchange
