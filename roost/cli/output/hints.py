"""What to do about short error messages of the API; those that go on after a colon count, too."""

from collections.abc import Mapping

from roost.agents.library.hub.errors import LibrarySkillConflict
from roost.agents.library.skills.errors import ConflictingSkills, SkillAttached, SkillLimitReached, SkillVersionConflict
from roost.agents.lifecycle.versions.errors import InvalidEngineVersion
from roost.agents.setup.channels.errors import ChannelConfigurationFailed, MissingBotToken, UnsupportedChannel
from roost.agents.setup.secrets.errors import ConflictingSecrets, DuplicateSecretName, SecretsNotConfigured
from roost.agents.setup.tasks.errors import InvalidTaskParameters, TaskCreateFailed, TaskListFailed
from roost.agents.workspace.commands.errors import CommandExecutionFailed, InvalidCommand
from roost.drivers.engine.abilities.channels import PairingRequestNotFound
from roost.drivers.engine.contract import EngineFailed
from roost.identity.errors import PermissionDenied
from roost.storage.payments.instructions.errors import PaymentInstructionInUse

_ENGINE_SILENT = "the engine did not answer; `roost logs AGENT` may say why"

HINTS: Mapping[str, str] = {
    ChannelConfigurationFailed.message: "the gateway did not start with it; `roost logs AGENT` may say why",
    CommandExecutionFailed.message: "`roost agents restart AGENT` may help",
    ConflictingSecrets.message: "the agent has a credential of the same provider; detach that first",
    ConflictingSkills.message: "detach the other one with `roost skills detach`",
    DuplicateSecretName.message: "`roost secrets update` changes the value of a secret",
    EngineFailed.message: _ENGINE_SILENT,
    InvalidCommand.message: "it is empty or too long, or its folder is not in the workspace",
    InvalidEngineVersion.message: "`roost versions AGENT` lists the versions",
    InvalidTaskParameters.message: "`roost tasks create --help` shows what is allowed; engines differ",
    LibrarySkillConflict.message: "delete it with `roost skills delete`",
    MissingBotToken.message: "`--bot-token-file FILE` names the file with the bot's token",
    PairingRequestNotFound.message: "the bot sends a new code to a stranger who writes to it",
    PaymentInstructionInUse.message: "detach them with `roost payments instructions detach`; `cids` lists them",
    PermissionDenied.message: "your key is limited; `roost keys create` makes another, `roost login` uses it",
    "Request header fields too large": "a command of more than about 8 KB needs a script in the workspace",
    SecretsNotConfigured.message: "the server has no key-encryption key",
    SkillAttached.message: "detach it first with `roost skills detach`",
    SkillLimitReached.message: "delete one with `roost skills delete`",
    SkillVersionConflict.message: (
        "changed files need a higher `version` in SKILL.md, or `--version`; for an older version, detach the skill and "
        "attach the CID"
    ),
    TaskCreateFailed.message: _ENGINE_SILENT,
    TaskListFailed.message: _ENGINE_SILENT,
    UnsupportedChannel.message: "channels are telegram, slack, discord and whatsapp",
}
