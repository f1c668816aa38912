"""Names in an archive, and the result of an import."""

from collections.abc import Sequence
from dataclasses import dataclass

from roost.agents.lifecycle.archives.schemas import AgentManifest
from roost.agents.registry.model import Agent

MANIFEST, WORKSPACE, STATE = "manifest.json", "workspace", "state"
MEDIA_TYPE = "application/vnd.ipld.car"


@dataclass(frozen=True)
class ImportedAgent:
    """A new agent, and what its archive describes.

    missing_skills: CIDs of skills that were not attached. skipped_tasks: names of tasks that the engine refuses.
    """

    agent: Agent
    manifest: AgentManifest
    missing_skills: Sequence[str] = ()
    skipped_tasks: Sequence[str] = ()
