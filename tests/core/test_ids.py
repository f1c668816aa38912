import os
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from roost.core import ids


def test_ids_are_random_uuids() -> None:
    made = {ids.new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert {uuid.UUID(value).version for value in made} == {4}


def test_threads_make_different_ids() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: [ids.new_id() for _ in range(500)], range(16)))
    assert len({value for values in made for value in values}) == 8000


def test_a_forked_process_makes_ids_of_its_own() -> None:
    ids.new_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, ids.new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 36).decode() not in {ids.new_id() for _ in range(1000)}
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("length", [1, 16, 63])
def test_host_labels_are_dns_labels_that_start_with_a_letter(length: int) -> None:
    for _ in range(200):
        assert re.fullmatch(rf"[a-z][a-z2-9]{{{length - 1}}}", ids.new_host_label(length))


def test_host_labels_use_no_signs_that_look_alike() -> None:
    used = set("".join(ids.new_host_label() for _ in range(500)))
    assert not used & set("lo01")
    assert len(used) == 32


def test_host_labels_are_recognised() -> None:
    assert ids.is_host_label(ids.new_host_label())
    assert not any(map(ids.is_host_label, ("ada", "2" + "a" * 15, "o" * 16, "a" * 17, "", "A" * 16)))


def test_tokens_carry_256_bits_after_their_prefix() -> None:
    first, second = ids.new_token("rst_gw"), ids.new_token("rst_gw")
    assert re.fullmatch(r"rst_gw_[0-9a-f]{64}", first)
    assert first != second


def test_random_bytes_are_as_many_as_asked() -> None:
    assert len(ids.random_bytes(12)) == 12
    assert ids.random_bytes(12) != ids.random_bytes(12)
