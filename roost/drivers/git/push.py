"""A push: the hooks of `git receive-pack`, and their conversation with the server over the control socket.

A hook sends facts and waits; the server answers with lines: `-TEXT` to show to who pushes, at last `+ok`, `+no`, or
`+end`. After that, and when the server has ended, a hook changes nothing more.
Objects are in Git's quarantine until `pre-receive` has ended. `update` records the push in a reference before the
server applies it, so that it can be finished after a crash; `post-receive` makes the new `main` durable and removes the
record.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from roost.core.machine.unix_socket import Stream
from roost.drivers.git.contract import (
    MAIN,
    MAX_REPOSITORY_BYTES,
    GitEntry,
    GitFailed,
    PushedTree,
    PushHandler,
    PushInterrupted,
    PushOutput,
    PushRefused,
    RefUpdate,
    UnknownCommit,
)
from roost.drivers.git.runner import GitRunner
from roost.drivers.git.scripts import INTERNAL_REFS, PENDING

CONCURRENT_PUSH = "Another push or change was faster. Run `git pull --rebase` and push again."

_QUARANTINE = re.compile(r"(tmp_objdir-)?incoming-\w+")
_UPDATE_LINE = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (\w+) (yes|no) (.*)\n")

_ANSWER = """#!/bin/sh
trap '' PIPE
answer() {
  while IFS= read -r line <&3; do
    case $line in
      +ok) return 0 ;;
      +no) return 1 ;;
      +end) exit 1 ;;
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
  while [ $count -lt 2 ] && read -r old new ref; do
    count=$((count + 1))
    kind=$(git cat-file -t "$new" 2>/dev/null) || kind=none
    fast=yes
    case $old in
      *[!0]*) git merge-base --is-ancestor "$old" "$new" 2>/dev/null || fast=no ;;
    esac
    printf '%s %s %s %s %s\\n' "$old" "$new" "$kind" "$fast" "$ref"
  done
  echo .
} >&3
answer
"""
_UPDATE = f"""
echo update >&3
answer || exit 1
if git rev-parse -q --verify {PENDING} >/dev/null; then
  echo unfinished
else
  git rev-parse -q --verify {MAIN} || echo
fi >&3
answer || exit 1
git update-ref {PENDING} "$3" && sync objects/pack refs {INTERNAL_REFS} || exit 1
echo recorded >&3
answer && exit
git update-ref -d {PENDING}
exit 1
"""
_POST_RECEIVE = f"""
sync refs/heads && git update-ref -d {PENDING} || exit 1
echo moved >&3
answer
"""
PUSH_HOOKS: Mapping[str, bytes] = {
    "pre-receive": (_ANSWER + _PRE_RECEIVE).encode(),
    "update": (_ANSWER + _UPDATE).encode(),
    "post-receive": (_ANSWER + _POST_RECEIVE).encode(),
}


class PushConversation(PushOutput):
    """The server's side of the control socket during one push.

    `lock` is the agent's, held from before the push is applied until `main` has moved.
    """

    def __init__(
        self, stream: Stream, handler: PushHandler, lock: asyncio.Lock, runner: GitRunner, agent_id: str
    ) -> None:
        self._reader, self._writer = stream
        self._handler = handler
        self._lock = lock
        self._runner = runner
        self._agent_id = agent_id
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
            self._lock.release()

    async def _pre_receive(self) -> None:
        quarantine = (await self._reader.readline()).decode().strip()
        if quarantine and not _QUARANTINE.fullmatch(quarantine):  # none for a deletion
            raise GitFailed("Git keeps the objects of a push in an unknown place")
        updates: list[RefUpdate] = []
        while (line := await self._reader.readline()) not in (b".\n", b""):
            updates.append(_parse_update(line))

        async def decide() -> None:
            if not self._runner.has_space(self._agent_id):
                raise PushRefused(f"The repository has reached its limit of {MAX_REPOSITORY_BYTES // 1024**3} GiB.")
            await self._handler.begin(updates)
            if len(updates) != 1 or updates[0].new is None or not updates[0].is_commit:
                raise PushRefused("Push one commit to one branch.")
            try:
                tree = _QuarantinedTree(self._runner, self._agent_id, quarantine, updates[0].new)
                await self._handler.check(tree)
            except (GitFailed, UnknownCommit):
                raise PushRefused("The pushed files cannot be read.") from None
            self._update = updates[0]

        await self._answer(decide())

    async def _apply(self) -> None:
        update = self._update
        if update is None:
            raise GitFailed("Git updates a reference without having asked")
        # Before the hook looks at `main`, so that no commit comes between its look and the record of the push.
        await self._lock.acquire()
        self._holds_lock = True
        try:
            await self._answer()
            current = (await self._reader.readline()).strip().decode()
            if not await self._answer(_check_current(current, update)):
                return
            if await self._reader.readline() != b"recorded\n":
                raise GitFailed("A push could not be recorded")
            self.settled.clear()
            self.is_applied = await self._answer(self._handler.apply(update, self))
        finally:
            self.settled.set()
            if not self.is_applied:
                self.release_lock()

    async def _finish(self) -> None:
        self.is_applied = False
        self.release_lock()
        await self._answer(self._handler.finish(self))

    async def _answer(self, decision: Awaitable[None] | None = None) -> bool:
        """Tell the hook whether the decision was to go on, and return it."""
        try:
            if decision is not None:
                await decision
            answer = b"+ok\n"
        except PushRefused as refusal:
            await self.say(str(refusal))
            answer = b"+end\n" if isinstance(refusal, PushInterrupted) else b"+no\n"
        with suppress(ConnectionError):
            self._writer.write(answer)
            await self._writer.drain()
        return answer == b"+ok\n"


@dataclass(frozen=True)
class _QuarantinedTree(PushedTree):
    runner: GitRunner
    agent_id: str
    quarantine: str
    commit: str

    def list_entries(self) -> AsyncGenerator[GitEntry]:
        return self.runner.list_tree(self.agent_id, self.commit, self.quarantine)

    async def read_files(self, entries: Sequence[GitEntry]) -> AsyncGenerator[bytes]:
        names = [entry.blob for entry in entries]
        async with aclosing(self.runner.read_blobs(self.agent_id, names, self.quarantine)) as blobs:
            async for blob in blobs:
                yield b"".join([chunk async for chunk in blob.content])


async def _check_current(current: str, update: RefUpdate) -> None:
    if current != (update.old or ""):
        raise PushRefused(CONCURRENT_PUSH)


def _parse_update(line: bytes) -> RefUpdate:
    found = _UPDATE_LINE.fullmatch(line.decode(errors="replace"))
    if found is None:
        raise GitFailed("A push has a malformed update")
    old, new = (None if not value.strip("0") else value for value in (found[1], found[2]))
    return RefUpdate(found[5], old, new, is_commit=found[3] == "commit", is_fast_forward=found[4] == "yes")
