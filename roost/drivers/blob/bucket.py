"""Object stores, imported when the settings name one."""

from roost.drivers.blob.contract import BlobStore


def open_bucket(url: str) -> BlobStore:
    """Return the object store at a URL. Raises BlobStoreFailed."""
    from roost.drivers.blob.object_store import ObjectStore  # its library takes 4 MB of memory

    return ObjectStore(url)
