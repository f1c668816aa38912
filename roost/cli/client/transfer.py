"""Transfers of files: a progress bar on standard error, and files that appear when they are complete."""

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from roost.cli.output.output import OutputWriter, error_console, file_errors


def save_chunks(chunks: Iterable[bytes], target: Path, mode: int = 0o666) -> None:
    """Write the chunks to a file, which appears when it is complete, or to standard output.

    `mode` are the permissions of the file, less the umask.
    """
    if target == Path("-"):
        writer = OutputWriter(sys.stdout)
        for chunk in chunks:
            writer.write(chunk)
        return
    partial = target.with_name(f".roost-{os.getpid()}.part")  # in the same file system, where a rename is atomic
    try:
        with file_errors(target):
            partial.touch(mode)
            with partial.open("wb") as file:
                file.writelines(chunks)
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def count_bytes(chunks: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    """Yield chunks, and report the length of each."""
    for chunk in chunks:
        yield chunk
        advance(len(chunk))


@contextmanager
def progress_bar(label: str, total: int | None) -> Generator[Callable[[int], None]]:
    """Show a progress bar on a terminal. total: bytes, None if unknown."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)
