"""The terminal of this process in raw mode, and keys that are for the command line and not for a remote program."""

import os
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager

_DEFAULT_SIZE, _SIZE_LIMIT = (80, 24), 1000
_ESCAPE, _LINE_ENDS = ord("~"), b"\r\n"
_SCREEN_RESET = (  # of a full-screen program: alternate screen, hidden cursor, modes of mouse, paste and keys
    b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m"
)


@contextmanager
def raw_terminal() -> Generator[None]:
    """Pass keys unchanged while the block runs; then restore the terminal, whatever happened."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def reset_screen() -> None:
    """Undo the modes that a program has set which can no longer do it."""
    if sys.stdout.isatty():
        write_screen(_SCREEN_RESET)


def write_screen(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def screen_size() -> tuple[int, int]:
    """Return columns and rows, within what the server accepts."""
    try:
        columns, rows = os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        return _DEFAULT_SIZE
    return min(columns or _DEFAULT_SIZE[0], _SIZE_LIMIT), min(rows or _DEFAULT_SIZE[1], _SIZE_LIMIT)


class EscapeFilter:
    """Finds `~.` at the start of a line, as ssh does; `~~` is one `~`."""

    def __init__(self) -> None:
        self.is_leaving = False
        self._at_line_start, self._is_escaped = True, False

    def filter(self, keys: bytes) -> bytes:
        """Return the keys for the remote program; those after `~.` are dropped."""
        passed = bytearray()
        for key in keys:
            if self._is_escaped:
                self._is_escaped = False
                if key == ord("."):
                    self.is_leaving = True
                    break
                if key != _ESCAPE:
                    passed.append(_ESCAPE)
            elif self._at_line_start and key == _ESCAPE:
                self._is_escaped = True
                continue
            passed.append(key)
            self._at_line_start = key in _LINE_ENDS
        return bytes(passed)
