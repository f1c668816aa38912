"""Find what skills want and their agent lacks: secrets, programs of its container, hosts that it may connect to."""

from collections.abc import Sequence
from contextlib import suppress

from roost.agents.library.skills.model import AttachedSkill, MissingRequirements
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.setup.secrets.service import SecretService
from roost.core.problem import Problem
from roost.net.policy import EgressPolicy

_FIND_MISSING = 'for one; do command -v -- "$one" >/dev/null || printf "%s\\n" "$one"; done'
_SECONDS = 5.0


class SkillRequirements:
    def __init__(self, secrets: SecretService, runtimes: AgentRuntimes, egress: EgressPolicy) -> None:
        self._secrets = secrets
        self._runtimes = runtimes
        self._egress = egress

    async def find_missing(self, agent_id: str, skills: Sequence[AttachedSkill]) -> Sequence[MissingRequirements]:
        """Return what each skill lacks, in their order. Raises AgentNotFound."""
        present = {one.secret.name for one in await self._secrets.list_attached(agent_id)}
        wanted = {program for one in skills for program in one.version.wants.programs}
        absent = await self._find_absent_programs(agent_id, sorted(wanted))
        return [self._missing_of(one, present, absent) for one in skills]

    def _missing_of(self, skill: AttachedSkill, present: set[str], absent: set[str] | None) -> MissingRequirements:
        wants = skill.version.wants
        return MissingRequirements(
            secrets=[secret.name for secret in wants.secrets if secret.required and secret.name not in present],
            programs=None if absent is None else [program for program in wants.programs if program in absent],
            hosts=[host for host in wants.hosts if not self._egress.admits_host(host.removeprefix("*."))],
        )

    async def _find_absent_programs(self, agent_id: str, programs: Sequence[str]) -> set[str] | None:
        """Return the programs that a shell of the container does not find, None if it cannot be asked."""
        if not programs:
            return set()
        warden = self._runtimes.get_warden(agent_id)
        with suppress(Problem):
            result = await warden.exec(["/bin/sh", "-c", _FIND_MISSING, "sh", *programs], timeout=_SECONDS)
            if result.exit_code == 0:
                return set(result.stdout.decode(errors="replace").splitlines())
        return None
