import pytest

from roost.core.problem import Invalid, Kind, Limited, Missing, Problem, TooLarge, Unavailable


class Tailored(Missing):
    message = "No such thing"


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Problem, Kind.FAILED),
        (Invalid, Kind.INVALID),
        (Missing, Kind.MISSING),
        (TooLarge, Kind.TOO_LARGE),
        (Limited, Kind.LIMITED),
        (Unavailable, Kind.UNAVAILABLE),
        (Tailored, Kind.MISSING),
    ],
)
def test_each_problem_has_its_kind_and_a_message(problem: type[Problem], kind: Kind) -> None:
    made = problem()
    assert made.kind is kind
    assert made.message == problem.message == str(made)


def test_one_message_can_stand_for_the_usual_one() -> None:
    assert Tailored("That one is gone").message == "That one is gone"
    assert Tailored().message == "No such thing"


def test_an_unexplained_problem_tells_nothing() -> None:
    assert Problem().message == "Internal error"


def test_extras_are_its_own() -> None:
    given = {"id": "a"}
    made = Problem(extra=given, retry_after=2.5)
    given["id"] = "b"
    assert made.extra == {"id": "a"}
    assert made.retry_after == 2.5
    assert Problem().extra == {}
    assert Problem().retry_after is None
