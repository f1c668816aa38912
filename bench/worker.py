"""The process of one benchmark: `python -m bench.worker MODULE:FUNCTION FOLDER DESCRIPTOR`.

It sends each row to the harness and waits for an answer, so that the harness works while nothing is measured. The last
message of a benchmark that fails is the reason, as text.
"""

import asyncio
import importlib
import os
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from bench.row import Row

_ROOT = Path(__file__).parent.parent
_REASON_CHARACTERS = 400
_ERRORS = 5


def describe_error(error: BaseException) -> str:
    """Return the error and those before it, the first one first: a clean-up that fails does not hide the cause."""
    chain: list[str] = []
    following: BaseException | None = error
    while following is not None:
        if (one := _describe_one(following)) not in chain:
            chain.append(one)
        following = following.__cause__ or following.__context__
    first, *later = reversed(chain)
    return "; then ".join([first, *later[-_ERRORS:]])


def _describe_one(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    if len(text) > _REASON_CHARACTERS:
        text = f"{text[: _REASON_CHARACTERS // 2]} ... {text[-_REASON_CHARACTERS // 2 :]}"
    place = _find_place(error)
    return f"{type(error).__name__}{text and ': '}{text}{place}"


def _find_place(error: BaseException) -> str:
    """Return the last line of a benchmark that led to the error, or else the last one of this repository."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    places = [f"{Path(frame.filename).relative_to(_ROOT)}:{frame.lineno}" for frame in frames]
    own = [place for place in places if place.startswith("bench/")] or places
    return f" ({own[-1]})" if own else ""


def _is_ours(filename: str) -> bool:
    path = Path(filename)
    return path.is_relative_to(_ROOT) and path != Path(__file__) and "site-packages" not in path.parts


def _rows(target: str, folder: Path) -> Generator[Row]:
    module, _, function = target.partition(":")
    rows: Iterable[Row] | AsyncGenerator[Row] = getattr(importlib.import_module(module), function)(folder)
    yield from iterate_rows(rows) if isinstance(rows, AsyncGenerator) else rows


def iterate_rows(
    rows: AsyncGenerator[Row], make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> Generator[Row]:
    with asyncio.Runner(loop_factory=make_loop) as runner:
        try:
            while (row := runner.run(_next_row(rows))) is not None:
                yield row
        finally:
            runner.run(rows.aclose())


async def _next_row(rows: AsyncGenerator[Row]) -> Row | None:
    return await anext(rows, None)


def main(target: str, folder: str, descriptor: str) -> None:
    os.set_inheritable(int(descriptor), False)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    harness = Connection(int(descriptor))
    try:
        with closing(_rows(target, Path(folder))) as rows:
            for row in rows:
                harness.send(row)
                harness.recv()
    except BaseException as error:  # noqa: BLE001 - every failure is a row
        traceback.print_exc()
        with suppress(OSError):  # the harness has ended
            harness.send(describe_error(error))
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
