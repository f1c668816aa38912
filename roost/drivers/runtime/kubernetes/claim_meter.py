"""Measures the files of agents in their claims, which a program of each container counts, within bounds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from roost.drivers.runtime.bwrap.disk_meter import HostDiskMeter
from roost.drivers.runtime.contract import Container, DiskUsage
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning

_SECONDS = 60.0
_SIZE_DIGITS = 18


class ClaimMeter(HostDiskMeter):
    """Meter of claims; the space that counts is that of the server, because a claim has a size of its own."""

    def __init__(self, folder: Path, open_warden: Callable[[str], WardenClient]) -> None:
        super().__init__(folder)
        self._open_warden = open_warden
        self._last: dict[str, DiskUsage] = {}

    async def measure(self, agent_id: str, *, paced: bool) -> DiskUsage:
        """Return the size of an agent's files by `du`, whose output the agent can forge.

        Of an agent that does not run it is the last count, once: then it may start, and is counted again. Raises what
        the client raises.
        """
        command = [*(["nice", "-n", "19"] if paced else []), "/bin/sh", "-c", '/usr/bin/du -s -B1 -x . "$HOME"']
        try:
            result = await self._open_warden(agent_id).exec(command, timeout=_SECONDS)
        except ContainerNotRunning:
            return self._last.pop(agent_id, DiskUsage(0))
        sizes = [line.split(b"\t")[0] for line in result.stdout.splitlines()]
        known = [int(size) for size in sizes if size.isdigit() and len(size) <= _SIZE_DIGITS]
        # It fails when a file vanishes meanwhile, too: what counts is a size for each of the two folders.
        usage = self._last[agent_id] = DiskUsage(sum(known), is_complete=len(known) == 2)
        return usage

    def written_bytes(self, containers: Sequence[Container]) -> Mapping[str, int]:  # noqa: ARG002 - the contract's
        return {}
