"""A short run of `make fuzz`, which is the long one."""

from pathlib import Path

from tests.fuzz.runner import fuzz


async def test_answers_are_those_of_the_description(tmp_path: Path) -> None:
    result = await fuzz(tmp_path, "--phases", "fuzzing", "--max-examples", "3", "--seed", "1")
    assert result.passed, result.output
    assert result.server_errors == 0
    assert result.requests.total() > 400
    assert result.requests[200] > 50, "nearly all requests were refused"
