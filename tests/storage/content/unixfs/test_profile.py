import pytest

from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.content.unixfs.profile import V0, V1, get_profile


def test_profiles_have_the_names_that_uploads_use() -> None:
    assert get_profile("v0") is V0
    assert get_profile("v1") is V1
    with pytest.raises(MalformedContent, match="unixfs-v1-2025"):
        get_profile("v2")
