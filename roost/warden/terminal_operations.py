"""Operations of terminals: open one, or connect again to one that runs; their number is bounded."""

from __future__ import annotations

import os

from .protocol import RequestRefused
from .terminal import Terminal, open_terminal_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .processes import ChildProcess
    from .protocol import Connection, Json

    Spawn = Callable[[Json, tuple[int, int]], ChildProcess]

MAX_TERMINALS = 8


class TerminalOperations:
    """Operations with their terminals; `spawn` starts the program of a request on both sides of a pseudo-terminal."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._terminals: dict[str, Terminal] = {}
        self.operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "open_terminal": self._open,
            "attach_terminal": self._attach,
        }

    async def _open(self, request: Json, connection: Connection) -> None:
        grace, columns, rows = float(request["grace"]), int(request["columns"]), int(request["rows"])
        await self._end_abandoned()
        ours, theirs = open_terminal_pair(columns, rows)
        try:
            child = self._spawn(request, (ours, theirs))
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        terminal = Terminal(child, grace)
        self._terminals[terminal.id] = terminal
        terminal.ended.add_done_callback(lambda _: self._terminals.pop(terminal.id, None))
        await terminal.serve(connection, 0)

    async def _attach(self, request: Json, connection: Connection) -> None:
        if (terminal := self._terminals.get(request["session"])) is None:
            raise RequestRefused("noTerminal", "no such terminal runs")
        terminal.resize(int(request["columns"]), int(request["rows"]))
        await terminal.serve(connection, int(request["after"]))

    async def _end_abandoned(self) -> None:
        """End a terminal without a client if there are too many; one whose program has ended goes first."""
        while len(self._terminals) >= MAX_TERMINALS:
            abandoned = [terminal for terminal in self._terminals.values() if not terminal.has_client]
            if not abandoned:
                raise RequestRefused("busy", "too many terminals are open")
            oldest = min(abandoned, key=lambda terminal: (not terminal.has_exited, terminal.detached_at))
            del self._terminals[oldest.id]
            await oldest.end()
