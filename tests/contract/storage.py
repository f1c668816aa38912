"""Files of tenants, added without an upload, for tests of other parts."""

from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.profile import V1, ImportProfile
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import NewFile
from tests.support.server import RunningServer


async def keep(
    server: RunningServer, tenant: str, network: ContentNetwork, data: bytes, profile: ImportProfile = V1
) -> File:
    """Add a file with that content for the tenant of that name."""
    roost = server.roost
    owner = roost.core.db.run(lambda connection: tenants.ensure_tenant(connection, tenant).id)
    async with roost.storage.content.receive(profile) as pack:
        await pack.write(data)
        tree = await pack.end_file()
        arrival = NewFile(owner, network, str(tree.cid), tree.size, "text/plain", FileMetadata("n"))
        return await pack.commit(lambda connection: roost.storage.files.files.add(connection, arrival, pack.pack_id))
