"""Isolated subprocesses for expensive work, which would block other threads; each program sets its own limits."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path


async def run_worker(data: bytes, program: Path, *arguments: str) -> bytes:
    """Run a program with the standard library only on `data`, and return its output; empty if it fails.

    Cancellation kills the process.
    """
    command = (sys.executable, "-I", "-S", str(program), *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/")
    try:
        output, _ = await process.communicate(data)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return output if process.returncode == 0 else b""
