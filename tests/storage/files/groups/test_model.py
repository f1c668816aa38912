import pytest

from roost.storage.files.groups.model import NAME_LIMIT, InvalidGroup, normalize_group_name


@pytest.mark.parametrize(
    ("given", "name"), [("n", "n"), ("  n m\t", "n m"), ("\u6f22", "\u6f22"), ("n" * NAME_LIMIT, "n" * NAME_LIMIT)]
)
def test_names_of_groups_are_normalised(given: str, name: str) -> None:
    assert normalize_group_name(given) == name


@pytest.mark.parametrize("given", ["", " ", "\n\t\u00a0", "n" * (NAME_LIMIT + 1)])
def test_names_that_are_none(given: str) -> None:
    with pytest.raises(InvalidGroup):
        normalize_group_name(given)
