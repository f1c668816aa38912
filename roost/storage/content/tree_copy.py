"""Copy a stored tree into a pack of its own, with the same CIDs."""

from contextlib import aclosing

from roost.storage.content.car_export import export_car
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import Cid


async def copy_tree(reader: ContentReader, scope: ContentScope, root: Cid, car: CarReceiver) -> None:
    """Write a tree to a new pack and commit its blob. Raises the errors of `export_car` and of the receiver."""
    async with aclosing(export_car(reader, scope, [await reader.stat(scope, root)])) as pieces:
        async for piece in pieces:
            await car.write(piece)
    await car.finish()
    await car.commit_blob()
