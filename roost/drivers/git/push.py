"""A push: the hooks of `git receive-pack`, and their conversation with the server over the control socket.

A hook sends facts and waits; the server answers with lines: `-TEXT` to show to who pushes, at last `+ok` or `+no`.
After that, and when the server has ended, a hook changes nothing more.
Objects are in Git's quarantine until `pre-receive` has ended. During `update` the server records the push in a
reference before it applies it, so that it can be finished after a crash; during `post-receive` it makes the new `main`
durable and removes the record.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from roost.core.machine.unix_socket import Stream
from roost.drivers.git.backing_store import UNCHANGED, BackingStore, References
from roost.drivers.git.contract import (
    MAX_REPOSITORY_BYTES,
    GitFailed,
    GitOutcomeUnknown,
    GitUnavailable,
    PushHandler,
    PushInterrupted,
    PushOutput,
    PushRefused,
    RefUpdate,
    UnknownCommit,
)
from roost.drivers.git.push_reader import PushReader
from roost.drivers.git.repository_files import (
    PACKS,
    file_errors,
    read_reference,
    remove_reference,
    sync_folder,
    write_reference,
)
from roost.drivers.git.runner import GitRunner
from roost.drivers.git.scripts import PENDING

CONCURRENT_PUSH = "Another push or change was faster. Run `git pull --rebase` and push again."

_QUARANTINE = re.compile(r"(tmp_objdir-)?incoming-\w+")
_UPDATE_LINE = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (.*)\n")

_ANSWER = """#!/bin/sh
trap '' PIPE
answer() {
  while IFS= read -r line <&3; do
    case $line in
      +ok) return 0 ;;
      +no) return 1 ;;
    esac
    printf '%s\\n' "${line#-}"
  done
  exit 1
}
"""
# A push of many references is refused; it costs no more than one of two.
_PRE_RECEIVE = """
{
  echo pre-receive
  echo "${GIT_QUARANTINE_PATH##*/}"
  count=0
  while [ $count -lt 2 ] && IFS= read -r line; do
    count=$((count + 1))
    printf '%s\\n' "$line"
  done
  echo .
} >&3
answer
"""
PUSH_HOOKS: Mapping[str, bytes] = {
    "pre-receive": (_ANSWER + _PRE_RECEIVE).encode(),
    "update": f"{_ANSWER}\necho update >&3\nanswer\n".encode(),
    "post-receive": f"{_ANSWER}\necho moved >&3\nanswer\n".encode(),
}


@dataclass(frozen=True)
class PushTarget:
    """The repository of a push. `lock` is the agent's; `read_head` returns its commit of `main`."""

    runner: GitRunner
    backing: BackingStore
    agent_id: str
    lock: asyncio.Lock
    read_head: Callable[[], Awaitable[str | None]]

    async def record(self, update: RefUpdate) -> None:
        """Record a push, durably with its objects. Raises PushRefused if another one or a commit was faster."""
        await self.backing.refresh(self.agent_id)
        path = self.runner.path(self.agent_id)
        if read_reference(path, PENDING) or await self.read_head() != update.old:
            raise PushRefused(CONCURRENT_PUSH)
        with file_errors():
            await asyncio.to_thread(sync_folder, path, PACKS)
        try:
            async with self.backing.save(self.agent_id, {"pending": update.new}):
                with file_errors():
                    await asyncio.to_thread(write_reference, path, PENDING, update.new or "")
        except GitOutcomeUnknown as problem:
            reason = f"{problem.message}: it may be applied later. Run `git fetch` before you push again."
            raise PushInterrupted(reason) from problem
        except GitUnavailable as problem:
            raise PushRefused(f"The push cannot be stored: {problem.message}.") from problem

    async def remove_record(self, references: References = UNCHANGED) -> None:
        """Remove the record of the push, and store `main` if it is given."""
        async with self.backing.save(self.agent_id, {"pending": None, **references}):
            with suppress(OSError):  # a record that stays is found later, as after a crash
                await asyncio.to_thread(remove_reference, self.runner.path(self.agent_id), PENDING)

    async def finish(self, update: RefUpdate) -> None:
        """Make the new `main` durable, and remove the record."""
        if await self.runner.read_head(self.agent_id) != update.new:
            raise GitFailed("Git has not moved the branch main")
        with file_errors():
            await asyncio.to_thread(sync_folder, self.runner.path(self.agent_id), "refs/heads")
        await self.remove_record({"main": update.new})


class PushConversation(PushOutput):
    """The server's side of the control socket during one push.

    The lock of the target is held from before the push is applied until `main` has moved.
    """

    def __init__(self, stream: Stream, handler: PushHandler, target: PushTarget, pushed: PushReader) -> None:
        self._reader, self._writer = stream
        self._handler = handler
        self._target = target
        self._pushed = pushed
        self._update: RefUpdate | None = None
        self._holds_lock = False
        self.is_applied = False
        """Whether the push is applied, and `main` has not been seen to move."""
        self.settled = asyncio.Event()
        """Cleared while the push is being applied."""
        self.settled.set()

    async def say(self, text: str) -> None:
        with suppress(ConnectionError):
            self._writer.write(b"".join(b"-%b\n" % line.encode(errors="replace") for line in text.splitlines()))
            await self._writer.drain()

    async def run(self) -> int:
        """Answer the hooks until the command ends, and return its status. Raises GitFailed."""
        stages = {b"pre-receive": self._pre_receive, b"update": self._apply, b"moved": self._finish}
        while word := (await self._reader.readline()).strip():
            if word.startswith(b"exit "):
                return int(word[5:])
            if word not in stages:
                raise GitFailed("A hook of Git sent something unexpected")
            await stages[word]()
        raise GitFailed("Git ended without a status")

    def release_lock(self) -> None:
        """Release the lock if this push holds it."""
        if self._holds_lock:
            self._holds_lock = False
            self._target.lock.release()

    async def _pre_receive(self) -> None:
        quarantine = (await self._reader.readline()).decode().strip()
        if quarantine and not _QUARANTINE.fullmatch(quarantine):  # none for a deletion
            raise GitFailed("Git keeps the objects of a push in an unknown place")
        updates: list[RefUpdate] = []
        while (line := await self._reader.readline()) not in (b".\n", b""):
            updates.append(_parse_update(line))

        async def decide() -> None:
            if not self._target.runner.has_space(self._target.agent_id):
                raise PushRefused(f"The repository has reached its limit of {MAX_REPOSITORY_BYTES // 1024**3} GiB.")
            if len(updates) == 1 and updates[0].new is not None:
                updates[0] = await self._pushed.open(quarantine, updates[0])
            await self._handler.begin(updates)
            if len(updates) != 1 or updates[0].new is None or not updates[0].is_commit:
                raise PushRefused("Push one commit to one branch.")
            try:
                await self._handler.check(self._pushed)
            except (GitFailed, UnknownCommit):
                raise PushRefused("The pushed files cannot be read.") from None
            self._update = updates[0]

        await self._answer(decide())

    async def _apply(self) -> None:
        update = self._update
        if update is None:
            raise GitFailed("Git updates a reference without having asked")
        # Before the look at `main`, so that no commit comes between it and the record of the push.
        await self._target.lock.acquire()
        self._holds_lock = True
        self.settled.clear()
        try:
            self.is_applied = await self._answer(self._apply_recorded(update))
        finally:
            self.settled.set()
            if not self.is_applied:
                self.release_lock()

    async def _apply_recorded(self, update: RefUpdate) -> None:
        await self._target.record(update)
        try:
            await self._handler.apply(update, self)
        except PushInterrupted:
            raise
        except PushRefused:
            await self._target.remove_record()
            raise

    async def _finish(self) -> None:
        if self._update is None:
            raise GitFailed("Git moves a reference without having asked")
        await self._target.finish(self._update)
        self.is_applied = False
        self.release_lock()
        await self._answer(self._handler.finish(self))

    async def _answer(self, decision: Awaitable[None]) -> bool:
        """Tell the hook whether the decision was to go on, and return it."""
        try:
            await decision
            answer = b"+ok\n"
        except PushRefused as refusal:
            await self.say(str(refusal))
            answer = b"+no\n"
        with suppress(ConnectionError):
            self._writer.write(answer)
            await self._writer.drain()
        return answer == b"+ok\n"


def _parse_update(line: bytes) -> RefUpdate:
    found = _UPDATE_LINE.fullmatch(line.decode(errors="replace"))
    if found is None:
        raise GitFailed("A push has a malformed update")
    old, new = (None if not value.strip("0") else value for value in (found[1], found[2]))
    return RefUpdate(found[3], old, new, is_commit=False, is_fast_forward=False)
