"""Every operation of the APIs has a command, or a reason in this table why it has none."""

import inspect
from collections.abc import Mapping
from enum import Enum
from types import CodeType, FunctionType

import pytest
from typer.core import TyperCommand, TyperGroup

from roost.cli.output import output
from roost.cli.output.output import OutputFormat
from roost.http.server.application import create_bare_application
from roost.http.stack.routes import route_table
from tests.cli.test_main import ALL

COMMANDS: Mapping[str, Mapping[str, str]] = {
    # module of the handlers: commands, by the handlers that they call
    "agents.lifecycle.archives": {"agents export": "export_agent", "agents import": "import_agent"},
    "agents.lifecycle.key_revocation": {"keys revoke": "revoke_key_and_tokens"},
    "agents.chat": {
        "conversations list": "list_conversations",
        "conversations show": "list_messages",
        "conversations stop": "stop_answer",
    },
    "agents.lifecycle.workflows": {
        "agents list": "list_agents",
        "agents memory": "list_memory",
        "agents create": "create_agent",
        "agents engines": "list_engines",
        "agents show": "show_agent",
        "agents delete": "delete_agent",
        "agents restart": "restart_agent",
        "update": "update_agent",
        "move": "move_agent",
        "agents token": "read_token rotate_token",
    },
    "agents.models.keys": {"models connect": "use_model_key"},
    "agents.models.servers": {
        "models list": "list_agent_models",
        "models servers": "list_model_servers",
        "models use": "use_model_server",
    },
    "agents.models.usage": {"usage": "show_usage show_agent_usage"},
    "agents.lifecycle.system": {
        "system show": "describe_system",
        "system checks": "check_system",
        "system engines": "list_engine_states",
    },
    "agents.workspace.commands": {"exec": "run_command stream_command", "shell": "open_terminal"},
    "agents.workspace.files": {
        "cp": "read_workspace_file download_workspace_file save_workspace_file upload_workspace_file",
        "workspace list": "list_workspace_files",
        "workspace watch": "watch_workspace_files",
        "workspace delete": "delete_workspace_file",
        "workspace move": "move_workspace_file",
        "workspace mkdir": "make_workspace_folder",
    },
    "agents.workspace.snapshots": {
        "snapshots list": "list_snapshots",
        "snapshots status": "get_sync_status",
        "snapshots sync": "take_snapshot",
        "snapshots reset": "reset_workspace",
        "snapshots label": "label_snapshot",
        "snapshots diff": "compare_snapshots",
    },
    "agents.setup.channels": {
        "channels list": "list_channels",
        "channels set": "configure_channel",
        "channels approve": "approve_pairing_request",
        "channels watch": "watch_channels",
        "channels remove": "remove_channel",
    },
    "agents.setup.secrets": {
        "secrets list": "list_secrets list_attached",
        "secrets create": "create_secret",
        "secrets update": "update_secret",
        "secrets delete": "delete_secret",
        "secrets attach": "attach_secrets",
        "secrets detach": "detach_secret",
    },
    "agents.library.skills": {
        "skills list": "list_skills list_agent_skills",
        "skills add": "register_skill publish_skill_version",
        "skills versions": "list_skill_versions",
        "skills delete": "delete_skill",
        "skills attach": "attach_skills",
        "skills detach": "detach_skill",
        "skills updates": "list_skill_updates",
        "skills update": "update_skill",
    },
    "agents.library.hub": {
        "hub search": "list_hub_skills",
        "hub show": "get_hub_skill get_hub_skill_of_owner",
        "hub install": "install_hub_skill",
        "skills publish": "publish_skill",
        "hub withdraw": "unpublish_skill",
    },
    "agents.lifecycle.versions": {"versions": "list_versions list_agent_versions", "update": "check_update"},
    "agents.workspace.scripts": {"scripts show": "show_scripts", "scripts retry": "retry_scripts"},
    "agents.setup.tasks": {
        "tasks list": "list_tasks",
        "tasks create": "create_task",
        "tasks show": "show_task",
        "tasks update": "update_task",
        "tasks delete": "delete_task",
        "tasks run": "run_task",
        "tasks toggle": "toggle_task",
        "tasks runs": "list_runs",
    },
    "agents.library.templates": {
        "templates list": "list_public_templates list_templates",
        "templates show": "get_template get_template_by_slug",
        "templates submit": "submit_template",
        "templates validate": "validate_template",
        "templates refs": "list_branches list_refs",
        "templates update": "update_template",
        "templates archive": "archive_template",
    },
    "agents.setup.devices": {
        "devices list": "list_devices",
        "devices approve": "approve_device",
        "devices approve-all": "approve_all_devices",
    },
    "agents.network.routes": {"routes list": "list_routes", "routes set": "replace_routes"},
    "agents.network.domains": {
        "domains list": "list_domains",
        "domains add": "register_domain",
        "domains challenge": "get_challenge",
        "domains update": "update_domain",
        "domains remove": "remove_domain",
        "domains verify": "verify_domain",
    },
    "agents.setup.runtime_config": {
        "config show": "get_config",
        "config set": "replace_config",
        "config validate": "validate_config",
    },
    "agents.workspace.logs": {"logs": "tail_logs follow"},
    "agents.lifecycle.self_service": {"agents update": "update_agent_metadata", "agents status": "get_agent_status"},
    "agents.network.sign_in": {"open": "create_sign_in_link"},
    "identity.sessions": {"dashboard": "create_session_link end_all_sessions"},
    "identity": {"keys create": "create_key", "keys list": "list_keys"},
    "events": {"events": "stream_events stream_event_messages stream_agent_events stream_agent_event_messages"},
    "storage.files.uploads": {"files upload": "upload_file", "files usage": "get_limits"},
    "storage.files.signed_urls": {"files upload-link": "create_upload_link", "files link": "create_download_link"},
    "storage.compat": {"login": "check_authentication"},
    "storage.pins": {"pins add": "pin_by_cid", "pins list": "list_pins", "pins remove": "delete_pin"},
    "storage.files.groups": {
        "groups list": "list_groups",
        "groups create": "create_group",
        "groups show": "get_group",
        "groups update": "update_group",
        "groups delete": "delete_group",
        "groups add": "add_to_group",
        "groups remove": "remove_from_group",
    },
    "storage.files": {
        "files totals": "get_totals",
        "files list": "list_files",
        "files show": "get_file",
        "files update": "update_file",
        "files delete": "delete_file",
    },
    "storage.gateways": {
        "gateways list": "list_gateways",
        "gateways create": "create_gateway",
        "gateways check": "gateway_exists",
        "gateways plugins": "list_marketplace get_from_marketplace list_all_plugins",
        "gateways show": "get_gateway list_plugins list_controls",
        "gateways install": "install_plugin",
        "gateways uninstall": "uninstall_plugin",
        "gateways delete": "delete_gateway",
        "gateways allow": "add_access_token add_address add_host",
        "gateways refuse": "remove_control",
        "gateways domains list": "list_custom_domains",
        "gateways domains add": "add_custom_domain",
        "gateways domains update": "update_custom_domain",
        "gateways domains verify": "verify_custom_domain",
        "gateways domains remove": "remove_custom_domain",
    },
    "storage.gateways.analytics": {"gateways analytics": "list_top_values list_periods"},
    "storage.files.signatures": {
        "signatures add": "add_signature",
        "signatures show": "get_signature",
        "signatures delete": "delete_signature",
    },
    "storage.gateways.swaps": {
        "swaps set": "put_swap",
        "swaps show": "get_swap_history",
        "swaps delete": "delete_swap",
    },
    "storage.payments.instructions": {
        "payments instructions create": "create_payment_instruction",
        "payments instructions list": "list_payment_instructions",
        "payments instructions show": "get_payment_instruction",
        "payments instructions update": "update_payment_instruction",
        "payments instructions delete": "delete_payment_instruction",
        "payments instructions cids": "list_payment_instruction_cids",
        "payments instructions attach": "attach_payment_instruction",
        "payments instructions detach": "detach_payment_instruction",
    },
    "storage.payments": {"payments list": "list_payments", "payments totals": "sum_payments"},
    "storage.vectors": {
        "vectors add": "vectorize_file",
        "vectors show": "get_file_vectors list_vectorized_files",
        "vectors remove": "delete_file_vectors",
        "vectors groups": "list_searchable_groups",
        "vectors query": "query_vectors",
        "vectors agents": "list_group_agents",
        "vectors grant": "grant_group",
        "vectors revoke": "revoke_group",
    },
    "storage.webhooks": {
        "webhooks list": "list_webhooks",
        "webhooks create": "create_webhook",
        "webhooks show": "get_webhook",
        "webhooks update": "update_webhook",
        "webhooks delete": "delete_webhook",
        "webhooks rotate-secret": "rotate_secret",
        "webhooks deliveries": "list_deliveries",
        "webhooks redeliver": "redeliver_webhook",
        "webhooks test": "test_webhook",
    },
}

REASONS: Mapping[str, str] = {
    # handlers, or the modules of handlers: why they have no command
    "agents.chat.follow_answer": "`roost chat` prints its answers itself",
    "agents.chat.send_chat_message": "`roost chat` talks to the engine's own API, at the agent's address",
    "agents.chat.send_message": "`roost chat` talks to the engine's own API, at the agent's address",
    "agents.workspace.git": "Git speaks this protocol; `roost clone` starts it",
    "agents.models.keys.list_model_providers": "the dashboard tells whose key was pasted; `models connect` names it",
    "agents.library.hub.clawhub": "the protocol of ClawHub's command line; `roost hub` has the same",
    "agents.library.hub.clawhub.openclaw": "the protocol of OpenClaw's own client",
    "agents.models.gateway": "OpenAI's protocol, for programs",
    "agents.lifecycle.self_service.create_platform_token": "an agent asks for it, with its gateway token",
    "agents.lifecycle.self_service.get_platform_identity": "an agent asks who it is",
    "agents.network.sign_in.sign_in": "a browser follows the link",
    "agents.network.sign_in.refuse_head": "a browser follows the link",
    "agents.lifecycle.key_revocation.list_token_reads": "the dashboard asks first; the command tells it after",
    "identity.revoke_key": "for clients of the storage API; the command also names the tokens that were read",
    "identity.sessions.open_session": "the dashboard signs in",
    "identity.sessions.show_session": "the dashboard asks who is signed in",
    "identity.sessions.end_session": "the dashboard signs out",
    "storage.files.uploads.upload_signed": "who has the link of `roost files upload-link` sends a form to it",
    "storage.files.tus": "TUS, a protocol of upload clients; `roost files upload` streams files of any size",
    "storage.compat": "old paths of other clients; the commands use the new ones",
    "storage.compat.psa": "the IPFS Pinning Service API, for its clients; `roost pins` has the same",
    "http.server.health": "for monitoring; every command asks for the domain itself",
}


def test_every_operation_has_a_command_or_a_reason() -> None:
    handlers = {
        row["handler"].removeprefix("roost.").replace(".api.", ".") for row in route_table(create_bare_application())
    }
    mapped = {
        f"{module}.{handler}" for module, table in COMMANDS.items() for handler in " ".join(table.values()).split()
    }
    explained = {one for one in handlers - mapped if {one, one.rpartition(".")[0]} & REASONS.keys()}
    assert handlers - mapped - explained == set()
    assert mapped - handlers == set()
    assert {name for name in REASONS if not any(name in (one, one.rpartition(".")[0]) for one in explained)} == set()


def test_the_commands_of_the_table_exist() -> None:
    assert {command for rows in COMMANDS.values() for command in rows} <= {" ".join(path) for path in ALL}


PRINTERS = {output.print_document, output.print_message, output.print_record, output.print_rows}


def find_calls(function: FunctionType, found: set[FunctionType]) -> None:
    """Add a function and those of the command line that it uses, also indirectly."""
    if function in found or not function.__module__.startswith("roost.cli"):
        return
    found.add(function)
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        for name in code.co_names:
            if isinstance(used := function.__globals__.get(name), FunctionType):
                find_calls(used, found)


OPPOSITES = {
    "dashboard": "dashboard",  # `--sign-out`
    "gateways uninstall": "gateways install",
    "groups remove": "groups add",
    "pins remove": "pins add",
    "secrets detach": "secrets attach",
    "skills detach": "skills attach",
    "vectors remove": "vectors add",
}


def unwrap_callback(command: TyperCommand | TyperGroup) -> FunctionType:
    """Return the function of a command, without its decorators."""
    assert command.callback is not None
    return inspect.unwrap(command.callback)


VERBS = {path: command for path, command in ALL.items() if not hasattr(command, "commands")}


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_command_that_prints_records_has_all_formats(path: tuple[str, ...]) -> None:
    calls: set[FunctionType] = set()
    find_calls(unwrap_callback(VERBS[path]), calls)
    defaults = [parameter.default for parameter in VERBS[path].params if parameter.name == "output"]
    formats = [{*type(default)} for default in defaults if isinstance(default, Enum)]
    choices = [one for one in formats if OutputFormat.TABLE in one]
    assert choices == ([{OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML}] if calls & PRINTERS else [])


def test_every_command_that_deletes_asks_first_or_has_an_opposite() -> None:
    silent: set[str] = set()
    for path, command in VERBS.items():
        calls: set[FunctionType] = set()
        find_calls(unwrap_callback(command), calls)
        deletes = any("DELETE" in constants(function.__code__) for function in calls)
        if deletes and "yes" not in {parameter.name for parameter in command.params}:
            silent.add(" ".join(path))
    assert silent == OPPOSITES.keys()
    assert set(OPPOSITES.values()) <= {" ".join(path) for path in ALL}


def constants(code: CodeType) -> set[object]:
    """Return the constants of a function and of those in it."""
    inner = [constants(one) for one in code.co_consts if isinstance(one, CodeType)]
    return {one for one in code.co_consts if isinstance(one, str)}.union(*inner)
