import asyncio
import os
from pathlib import Path

import pytest

from roost.core.machine.subprocess_worker import run_worker


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


async def test_a_program_answers(program: Path) -> None:
    program.write_text("import sys; sys.stdout.buffer.write(sys.argv[1].encode() + sys.stdin.buffer.read()[::-1])")
    question = bytes(range(256)) * 1000
    assert await run_worker(question, program, "-a") == b"-a" + question[::-1]


async def test_it_has_nothing_of_ours(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s")
    program.write_text("import os, sys; print(os.environ.get('SECRET'), os.getcwd(), 'site' in sys.modules)")
    assert await run_worker(b"", program) == b"None / False\n"


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit(3)",
        "import os; os.kill(os.getpid(), 9)",
        "import nothing",
        "import os; os.write(1, b'a part'); os.kill(os.getpid(), 9)",
    ],
)
async def test_one_that_fails_gives_nothing(program: Path, text: str) -> None:
    program.write_text(text)
    assert await run_worker(b"x" * 1_000_000, program) == b""


async def test_one_that_nobody_waits_for_is_ended(program: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    program.write_text(f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    task = asyncio.create_task(run_worker(b"", program))
    pid = int(await asyncio.to_thread(told.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
