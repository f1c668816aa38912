import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.unixfs import car, varint
from roost.storage.unixfs.car import Reader
from roost.storage.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.unixfs.dagpb import BLOCK_LIMIT
from roost.storage.unixfs.errors import Malformed

BLOCKS = [(Cid.of(RAW, data), data) for data in (b"", b"a", b"b" * 300, b"c" * 70_000)]
BLOCKS += [(Cid.of(DAG_PB, b"old", 0), b"old")]
ROOTS = [BLOCKS[0][0], BLOCKS[-1][0]]
CAR = b"".join(car.written(ROOTS, BLOCKS))


def read(data: bytes, step: int = 1 << 20) -> Reader:
    reader = Reader()
    for at in range(0, len(data), step):
        for found in reader.feed(data[at : at + step]):
            assert data[found.offset :].startswith(found.data)
            assert found.cid.names(found.data)
    reader.finish()
    return reader


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
def test_there_and_back(step: int) -> None:
    reader, found = Reader(), []
    for at in range(0, len(CAR), step):
        found += [(one.cid, one.data) for one in reader.feed(CAR[at : at + step])]
    reader.finish()
    assert found == BLOCKS
    assert reader.roots == ROOTS


def test_a_known_header() -> None:
    """The header of one root, as the specification prints it."""
    root = Cid.parse("bafyreihyrpefhacm6kkp4ql6j6udakdit7g3dmkzfriqfykhjw6cad5lrm")
    wanted = (
        "3aa265726f6f747381d82a58250001711220f88bc853804cf294fe417e4fa83028689fcdb1b1592c5102e1474dbc200fab8b"
        "6776657273696f6e01"
    )
    assert car.header([root]).hex() == wanted


@pytest.mark.parametrize("cut", range(1, 38))
def test_one_that_is_cut_off(cut: int) -> None:
    """Anywhere within its last block, which is 38 bytes with its CID."""
    with pytest.raises(Malformed):
        read(CAR[:-cut])


def test_a_block_that_is_not_what_it_says() -> None:
    with pytest.raises(Malformed, match="not what its CID says"):
        read(CAR[:-1] + b"!")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        varint.encode(BLOCK_LIMIT * 2) + b"x",
        b"\xff" * 10,
        car.header(ROOTS).replace(b"version\x01", b"version\x02"),
        car.header(ROOTS).replace(b"roots", b"rootz"),
        car.header(ROOTS) + b"\0",
        car.header(ROOTS) + varint.encode(BLOCK_LIMIT + 1000) + b"x" * 20,
    ],
)
def test_what_is_none(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data)


def test_many_roots() -> None:
    roots = [Cid.of(RAW, str(number).encode()) for number in range(300)]
    assert read(car.header(roots)).roots == roots


@given(st.integers(0, 400), st.binary(min_size=1, max_size=10))
def test_no_change_breaks_it(at: int, noise: bytes) -> None:
    try:
        read(CAR[:at] + noise + CAR[at + len(noise) :], step=97)
    except Malformed:
        return
