import pytest

from roost.storage.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.unixfs.errors import InvalidCid, Malformed

V0 = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
V1 = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
HELLO = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"


def test_a_block_and_its_cid() -> None:
    cid = Cid.of(RAW, b"hello world")
    assert str(cid) == HELLO
    assert cid.names(b"hello world")
    assert not cid.names(b"hello world!")
    assert Cid.parse(HELLO) == cid


def test_the_two_versions_of_one_content() -> None:
    assert str(Cid.parse(V0).v1()) == V1
    assert Cid.parse(V0).codec == DAG_PB
    assert str(Cid.parse(V0)) == V0


@pytest.mark.parametrize(
    "text",
    [
        HELLO,
        HELLO.upper(),
        "f01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
        "F01551220B94D27B9934D3E08A52E52D7DA7DABFAC484EFE37A5380EE9088F7ACE2EFCDE9",
        "zb2rhj7crUKTQYRGCRATFaQ6YFLTde2YzdqbbhAASkL9uRDXn",
        "k2cwued9o1pvrt3q271rrqbo49x30tbxwpoeaq75z14e5ui2rzygpbe1",
        "uAVUSILlNJ7mTTT4IpS5S19p9q_rEhO_jelOA7pCI96zi783p",
    ],
)
def test_every_usual_alphabet(text: str) -> None:
    assert str(Cid.parse(text)) == HELLO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "Qm",
        "x" * 46,
        V0[:-1],
        V0 + "a",
        HELLO[:-1],
        HELLO + "a",
        HELLO + "=",
        HELLO[:-1] + "f",  # its last letter has a bit that belongs to nothing
        " " + HELLO,
        "f01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9 ",
        "f0255" + "00" * 34,
        "f" + "80" * 40,
        "f01551221" + "00" * 33,
        "f015512" + "ffff7f",
        "b" + "a" * 600,
        "zQmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH",
        "bäöü",
    ],
)
def test_what_is_no_cid(text: str) -> None:
    with pytest.raises(InvalidCid):
        Cid.parse(text)


def test_the_bytes_of_a_cid() -> None:
    for text in (V0, V1, HELLO):
        cid = Cid.parse(text)
        assert Cid.read(bytes(cid) + b"rest") == (cid, len(bytes(cid)))
        for length in range(len(bytes(cid))):
            with pytest.raises(Malformed):
                Cid.read(bytes(cid)[:length])


def test_content_in_the_cid_itself() -> None:
    cid = Cid(1, RAW, IDENTITY, b"tiny")
    assert Cid.parse(str(cid)) == cid
    assert cid.names(b"tiny")
    assert not Cid(1, RAW, 0x13, b"\0" * 64).names(b"")
