import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.unixfs import dagpb
from roost.storage.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.unixfs.dagpb import Kind, Link, Unixfs
from roost.storage.unixfs.errors import Malformed

A = Link(Cid.of(RAW, b"a"), "a", 1)
B = Link(Cid.of(DAG_PB, b"b", 0), "b", 1 << 40)


def test_there_and_back() -> None:
    unixfs = Unixfs(Kind.FILE, b"data", 7, (1, 2), 0x22, 256)
    node = dagpb.decode(dagpb.encode([A, B], unixfs))
    assert list(node.links) == [A, B]
    assert node.unixfs == Unixfs(Kind.FILE, b"data", 7, [1, 2], 0x22, 256)


def test_known_bytes() -> None:
    assert dagpb.encode([], Unixfs(Kind.DIRECTORY)).hex() == "0a020801"
    before, after = dagpb.leaf_frame(0)
    assert (before + after).hex() == "0a0408021800"
    before, after = dagpb.leaf_frame(5)
    assert dagpb.decode(before + b"hello" + after).unixfs == Unixfs(Kind.FILE, b"hello", 5, [])


def test_the_old_order_and_the_packed_form_are_read() -> None:
    link = dagpb.encode([A], Unixfs(Kind.DIRECTORY))[:-4]
    assert list(dagpb.decode(bytes.fromhex("0a020801") + link).links) == [A]
    assert dagpb.decode(bytes.fromhex("0a06" + "0802" + "2202" + "0102")).unixfs.sizes == [1, 2]
    assert dagpb.decode(bytes.fromhex("0a08" + "0802" + "4204" + "08017801")).unixfs.kind is Kind.FILE


@pytest.mark.parametrize(
    "data",
    [
        "",  # no data at all
        "0a0208",
        "0a020809",  # of an unknown kind
        "0a0208010a020801",  # twice
        "1a0208010a020801",  # an unknown field
        "0b020801",
        "12000a020801",  # a link to nothing
        "12020a000a020801",
        "120212000a020801",
        "0a047a020801",
        "0a021801",  # no kind
    ],
)
def test_what_is_no_node(data: str) -> None:
    with pytest.raises(Malformed):
        dagpb.decode(bytes.fromhex(data))


def test_names_are_utf8() -> None:
    block = dagpb.encode([A], Unixfs(Kind.DIRECTORY)).replace(b"\x12\x01a", b"\x12\x01\xff")
    with pytest.raises(Malformed):
        dagpb.decode(block)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    try:
        dagpb.decode(data)
    except Malformed:
        return


@given(st.binary(max_size=40), st.integers(0, 60))
def test_no_change_of_a_node_breaks_it(noise: bytes, at: int) -> None:
    block = dagpb.encode([A, B], Unixfs(Kind.FILE, b"data", 7, (1, 2)))
    try:
        dagpb.decode(block[:at] + noise + block[at + len(noise) :])
    except Malformed:
        return
