import pytest

from roost.storage.files.model import InvalidFileMetadata, check_keyvalues


def test_keyvalues_of_each_type_are_kept() -> None:
    given = {"a": "1", "b": 2, "c": 2.5, "d": True}
    assert check_keyvalues(given) == given


@pytest.mark.parametrize(
    "given",
    [
        {str(number): "x" for number in range(11)},
        {"": "x"},
        {"k" * 256: "x"},
        {"k": "v" * 1025},
        {"k": None},
        {"k": {}},
        {"k": float("nan")},
    ],
)
def test_keyvalues_that_are_none(given: dict[str, object]) -> None:
    with pytest.raises(InvalidFileMetadata):
        check_keyvalues(given)


def test_a_pair_fits_into_an_index() -> None:
    assert check_keyvalues({"k" * 255: "v" * 1024})
    with pytest.raises(InvalidFileMetadata):
        check_keyvalues({"k": "\N{PARTY POPPER}" * 1024})
