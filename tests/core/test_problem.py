import pytest

from roost.core.problem import (
    AccessDenied,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    Problem,
    ProblemKind,
    ResourceConflict,
    ServiceUnavailable,
    TooManyRequests,
)


class CustomNotFound(NotFound):
    message = "No such thing"


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Problem, ProblemKind.FAILED),
        (InvalidInput, ProblemKind.INVALID),
        (AccessDenied, ProblemKind.FORBIDDEN),
        (NotFound, ProblemKind.MISSING),
        (ResourceConflict, ProblemKind.CONFLICT),
        (PayloadTooLarge, ProblemKind.TOO_LARGE),
        (TooManyRequests, ProblemKind.LIMITED),
        (ServiceUnavailable, ProblemKind.UNAVAILABLE),
        (CustomNotFound, ProblemKind.MISSING),
    ],
)
def test_each_problem_has_its_kind_and_a_message(problem: type[Problem], kind: ProblemKind) -> None:
    made = problem()
    assert made.kind is kind
    assert made.message == problem.message == str(made)


def test_one_message_can_stand_for_the_usual_one() -> None:
    assert CustomNotFound("That one is gone").message == "That one is gone"
    assert CustomNotFound().message == "No such thing"


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
