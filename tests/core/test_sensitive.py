import copy
import json
import pickle
import traceback

import pytest

from roost.core.sensitive import Sensitive

VALUE = "correct-horse-battery"


@pytest.mark.parametrize("show", [str, repr, "{}".format, "{!r:>30}".format, "{:>30}".format, lambda s: f"{s}"])
def test_no_way_to_print_shows_it(show) -> None:
    shown = show(Sensitive(VALUE))
    assert VALUE not in shown
    assert "[redacted]" in shown


def test_containers_and_json_do_not_show_it() -> None:
    assert VALUE not in repr([Sensitive(VALUE), {"key": Sensitive(VALUE)}])
    assert VALUE not in json.dumps({"key": Sensitive(VALUE)}, default=str)
    with pytest.raises(TypeError):
        json.dumps(Sensitive(VALUE))


def test_it_has_no_dict_to_dump() -> None:
    with pytest.raises(TypeError):
        vars(Sensitive(VALUE))


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_not_pickled_or_copied(leave) -> None:
    with pytest.raises(TypeError) as refusal:
        leave(Sensitive(VALUE))
    assert VALUE not in "".join(traceback.format_exception(refusal.value))


def test_reveal_gives_it_back() -> None:
    assert Sensitive(VALUE).reveal() == VALUE
    assert Sensitive(b"\x00\xff").reveal() == b"\x00\xff"


def test_equality_is_by_value_and_only_among_its_kind() -> None:
    assert Sensitive("ü") == Sensitive("ü")
    assert Sensitive("a") != Sensitive("b")
    assert Sensitive("a") != "a"
    assert len({Sensitive("a"), Sensitive("a"), Sensitive("b")}) == 2
