"""What to do about errors of the API, by their codes; `docs/reference/errors.md` has them as remedies."""

from collections.abc import Mapping

_ENGINE_SILENT = "the engine did not answer; `roost logs AGENT` may say why"
_LIMITED_KEY = "your key is limited; `roost keys create` makes another, `roost login` uses it"
_OLD_VERSION = (
    "changed files need a higher `version` in SKILL.md, or `--version`; for an older version, detach the skill and "
    "attach the CID"
)

HINTS: Mapping[str, str] = {
    "access_denied": _LIMITED_KEY,
    "channel_configuration_failed": "the gateway did not start with it; `roost logs AGENT` may say why",
    "command_execution_failed": "`roost agents restart AGENT` may help",
    "conflicting_secrets": "the agent has a credential of the same provider; detach that first",
    "conflicting_skills": "detach the other one with `roost skills detach`",
    "duplicate_secret_name": "`roost secrets update` changes the value of a secret",
    "engine_failed": _ENGINE_SILENT,
    "hub_version_conflict": _OLD_VERSION,
    "invalid_command": "it is empty or too long, or its folder is not in the workspace",
    "invalid_engine_version": "`roost versions AGENT` lists the versions",
    "invalid_task_parameters": "`roost tasks create --help` shows what is allowed; engines differ",
    "key_opens_no_session": _LIMITED_KEY,
    "library_skill_conflict": "delete it with `roost skills delete`",
    "missing_bot_token": "`--bot-token-file FILE` names the file with the bot's token",
    "owner_refused": _LIMITED_KEY,
    "pairing_request_not_found": "the bot sends a new code to a stranger who writes to it",
    "payment_instruction_in_use": "detach them with `roost payments instructions detach`; `cids` lists them",
    "permission_denied": _LIMITED_KEY,
    "request_header_fields_too_large": "a command of more than about 8 KB needs a script in the workspace",
    "rpc_refused": _ENGINE_SILENT,
    "secrets_not_configured": "the server has no key-encryption key",
    "skill_attached": "detach it first with `roost skills detach`",
    "skill_limit_reached": "delete one with `roost skills delete`",
    "skill_version_conflict": _OLD_VERSION,
    "task_create_failed": _ENGINE_SILENT,
    "task_list_failed": _ENGINE_SILENT,
    "unsupported_channel": "it is no channel, or not set up: `roost channels list AGENT` shows the channels that are",
}
