"""What to do about short error messages that the API's contract fixes."""

from collections.abc import Mapping

from roost.agents.channels.errors import ChannelConfigurationFailed, UnsupportedChannel
from roost.agents.commands.errors import CommandExecutionFailed, InvalidCommand
from roost.agents.registry.errors import AgentLimitReached
from roost.agents.secrets.errors import ConflictingSecrets, DuplicateSecretName, SecretsNotConfigured
from roost.agents.tasks.errors import InvalidTaskParameters, TaskCreateFailed, TaskListFailed
from roost.agents.versions.errors import InvalidEngineVersion
from roost.drivers.engine.contract import EngineFailed

_ENGINE_SILENT = "the engine did not answer; `roost logs AGENT` may say why"

HINTS: Mapping[str, str] = {
    AgentLimitReached.message: "delete an agent, or raise `quota_free` or `quota_paid` in the settings",
    ChannelConfigurationFailed.message: "the gateway did not start with it; `roost logs AGENT` may say why",
    CommandExecutionFailed.message: "`roost agents restart AGENT` may help",
    ConflictingSecrets.message: "the agent has a credential of the same provider; detach that first",
    DuplicateSecretName.message: "`roost secrets update` changes the value of a secret",
    EngineFailed.message: _ENGINE_SILENT,
    InvalidCommand.message: "it is empty or too long, or its folder is not in the workspace",
    InvalidEngineVersion.message: "`roost versions AGENT` lists the versions",
    InvalidTaskParameters.message: "`roost tasks create --help` shows what is allowed; engines differ",
    "Request header fields too large": "a command of more than about 8 KB needs a script in the workspace",
    SecretsNotConfigured.message: "the server has no key-encryption key",
    TaskCreateFailed.message: _ENGINE_SILENT,
    TaskListFailed.message: _ENGINE_SILENT,
    UnsupportedChannel.message: "channels are telegram, slack, discord and whatsapp",
}
