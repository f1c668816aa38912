import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.seal import OVERHEAD, Sealer, SealingKeyMissing, SealingKeys, UnsealFailed
from roost.core.sensitive import Sensitive

KEY = Sensitive(bytes(range(32)))
PLACE = "secrets/1/1"


@given(value=st.binary(max_size=500), associated_data=st.text(max_size=50))
def test_sealed_value_opens_at_its_place(value: bytes, associated_data: str) -> None:
    sealer = Sealer(KEY)
    assert sealer.open(sealer.seal(value, associated_data), associated_data) == Sensitive(value)


def test_an_envelope_shows_nothing_of_its_value_and_is_never_the_same() -> None:
    sealer = Sealer(KEY)
    first, second = sealer.seal(b"correct-horse", PLACE), sealer.seal(b"correct-horse", PLACE)
    assert b"correct" not in first
    assert first != second
    assert first[-29:] != second[-29:]


def test_another_process_with_the_same_key_opens_it() -> None:
    assert Sealer(KEY).open(Sealer(Sensitive(KEY.reveal())).seal(b"value", PLACE), PLACE).reveal() == b"value"


@pytest.mark.parametrize("associated_data", ["secrets/2/1", "secrets/1/2", "", "secrets/1/1 "])
def test_a_moved_envelope_does_not_open(associated_data: str) -> None:
    with pytest.raises(UnsealFailed):
        Sealer(KEY).open(Sealer(KEY).seal(b"value", PLACE), associated_data)


def test_every_flipped_bit_is_noticed() -> None:
    envelope = Sealer(KEY).seal(b"value", PLACE)
    for index in range(len(envelope) * 8):
        damaged = bytearray(envelope)
        damaged[index // 8] ^= 1 << index % 8
        with pytest.raises(UnsealFailed):
            Sealer(KEY).open(bytes(damaged), PLACE)


def test_every_cut_is_noticed() -> None:
    envelope = Sealer(KEY).seal(b"value", PLACE)
    for length in range(len(envelope)):
        with pytest.raises(UnsealFailed):
            Sealer(KEY).open(envelope[:length], PLACE)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(UnsealFailed) as refusal:
        Sealer(Sensitive(bytes(32))).open(Sealer(KEY).seal(b"value", PLACE), PLACE)
    assert refusal.value.message == "Stored value could not be opened"


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_the_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(Sensitive(bytes(length)))


def test_the_key_id_tells_keys_apart_and_is_not_the_key() -> None:
    sealer = Sealer(KEY)
    assert sealer.key_id == Sealer(KEY).key_id != Sealer(Sensitive(bytes(32))).key_id
    assert sealer.key_id not in KEY.reveal()


def test_with_several_keys_all_open_and_the_first_seals() -> None:
    other = Sensitive(bytes(32))
    old, both = Sealer(KEY), Sealer(other, KEY)
    assert both.open(old.seal(b"value", PLACE), PLACE).reveal() == b"value"
    assert Sealer(other).open(both.seal(b"value", PLACE), PLACE).reveal() == b"value"
    assert both.key_ids == [Sealer(other).key_id, old.key_id]


def test_an_envelope_is_longer_by_a_fixed_amount() -> None:
    assert [len(Sealer(KEY).seal(bytes(size), PLACE)) - size for size in (0, 1, 1000)] == [OVERHEAD] * 3


def test_keys_that_change_are_followed_as_long_as_they_belong_together() -> None:
    first, second, strange = (Sensitive(bytes([number] * 32)) for number in range(3))
    found = [SealingKeys((first,))]
    sealer = Sealer(source=lambda: found[0])
    before = sealer.seal(b"old", PLACE)
    found[0] = SealingKeys((second, first))
    assert sealer.open(Sealer(second).seal(b"new", PLACE), PLACE).reveal() == b"new"
    assert sealer.open(before, PLACE).reveal() == b"old"
    found[0] = SealingKeys((second,), frozenset({Sealer(first).key_id}))
    assert Sealer(second).open(sealer.seal(b"new", PLACE), PLACE).reveal() == b"new"
    with pytest.raises(UnsealFailed):
        sealer.open(before, PLACE)
    found[0] = SealingKeys((strange,))
    with pytest.raises(SealingKeyMissing):
        sealer.seal(b"value", PLACE)
    with pytest.raises(UnsealFailed):
        sealer.open(Sealer(strange).seal(b"value", PLACE), PLACE)
