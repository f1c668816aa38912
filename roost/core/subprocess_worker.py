"""A program of our own beside the server, in a process with nothing of the server's: for work that could take much time
or memory and would stop all others in a thread. What bounds it, the program sets for itself.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path


async def run_worker(question: bytes, program: Path, *arguments: str) -> bytes:
    """What the program writes when it reads the question; it has the standard library alone. Ended when not awaited.

    Nothing from one that fails, whatever it wrote before: it could be a part.
    """
    command = (sys.executable, "-I", "-S", str(program), *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/")
    try:
        answer, _ = await process.communicate(question)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return answer if process.returncode == 0 else b""
