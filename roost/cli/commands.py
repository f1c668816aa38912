"""All commands and groups of the program: where they are, and what its help says of each (decision 0044)."""

from collections.abc import Mapping
from dataclasses import dataclass

from typer.core import TyperCommand

from roost.cli.arguments import PassThroughCommand


@dataclass(frozen=True)
class CommandSource:
    """Place of a command or of a group in the code.

    target: a module of `roost.cli` and its function or `typer.Typer`, by default `commands`. summary: the first
    sentence of a command's help, all of a group's. kind: the class of a command.
    """

    target: str
    summary: str
    kind: type[TyperCommand] = TyperCommand


COMMANDS: Mapping[str, CommandSource] = {
    # name of the command or group: its source
    "up": CommandSource("server.server:start_server", "Start the server."),
    "apply": CommandSource(
        "fleet.commands:apply_fleet", "Make agents as a file declares them: show the difference, then change only that."
    ),
    "login": CommandSource(
        "server.contexts:log_in", "Check a key with a server and keep both as a context, which is used from now on."
    ),
    "logout": CommandSource("server.contexts:log_out", "Forget a server and its key on this machine."),
    "chat": CommandSource("agents.chat:chat_with_agent", "Talk to an agent."),
    "open": CommandSource(
        "agents.agents:open_agent", "Open the agent's page in a browser, signed in by a link that works once."
    ),
    "dashboard": CommandSource(
        "server.dashboard:open_dashboard", "Open the dashboard in a browser, signed in by a link that works once."
    ),
    "logs": CommandSource(
        "agents.logs:print_logs", "Print the last 100 lines of an agent's logs; with -f, follow them."
    ),
    "events": CommandSource(
        "server.events:print_events",
        "Print the changes of agents, files and other resources in the last hour; with -f, follow new ones.",
    ),
    "exec": CommandSource(
        "agents.execute:exec_command",
        "Run a command in an agent's container and exit with its exit code.",
        PassThroughCommand,
    ),
    "shell": CommandSource(
        "agents.shell:open_shell",
        "Open a shell in an agent's container and exit with its exit code.",
        PassThroughCommand,
    ),
    "cp": CommandSource(
        "agents.copy:copy_files", "Copy files and folders between this machine and an agent's workspace: AGENT:PATH."
    ),
    "clone": CommandSource(
        "agents.copy:clone_agent",
        "Clone an agent's files and their history with Git; `git pull` and `git push` work in the clone.",
    ),
    "usage": CommandSource(
        "agents.models:print_usage",
        "Print requests to models and their tokens by day, model or agent; as JSON all of it.",
    ),
    "versions": CommandSource(
        "agents.runtime_config:list_versions",
        "List the engine versions that an agent can be updated to or restarted with, newest first.",
    ),
    "update": CommandSource("agents.runtime_config:update_engine", "Update an agent's engine."),
    "move": CommandSource(
        "agents.runtime_config:move_agent",
        "Move an agent to another runtime or server, with all its files.",
    ),
    "doctor": CommandSource(
        "server.server:run_doctor", "Check whether agents can run on this machine and which limits are enforced."
    ),
    "proxy-config": CommandSource(
        "server.server:print_proxy_config",
        "Print a configuration for a proxy of yours, which terminates TLS in front of this server.",
    ),
    "scrub": CommandSource(
        "server.server:scrub_content", "Verify all stored content and list what is damaged of all tenants."
    ),
    "migrate": CommandSource("server.server:migrate_database", "Migrate the database to this version."),
    "facilitator": CommandSource("server.server:run_facilitator", "Serve a facilitator of payments for one chain."),
    "agents": CommandSource("agents.agents", "Manage agents, each in its own container."),
    "channels": CommandSource(
        "agents.channels", "Manage an agent's chat channels: telegram, slack, discord, whatsapp."
    ),
    "contexts": CommandSource(
        "server.contexts", "Choose the server that commands talk to, of those that `roost login` knows."
    ),
    "conversations": CommandSource(
        "agents.chat:conversation_commands", "Read the conversations of an agent in the dashboard."
    ),
    "devices": CommandSource("agents.devices", "Manage the devices that are paired with an agent."),
    "config": CommandSource("agents.runtime_config", "Manage the configuration of an agent's engine."),
    "engines": CommandSource("server.engines", "Manage the assistant software that agents run."),
    "hosts": CommandSource("server.system:host_commands", "Manage the servers that share a database."),
    "hub": CommandSource("library.hub", "Find published skills and install them into your library."),
    "keys": CommandSource("server.keys", "Manage API keys, the JWTs of a tenant."),
    "models": CommandSource("agents.models", "Manage the models that agents use."),
    "routes": CommandSource("agents.domains:route_commands", "Lead paths of an agent's address to its own programs."),
    "domains": CommandSource("agents.domains", "Give an agent names of its own."),
    "api": CommandSource("server.server:api_commands", "Look at the HTTP API."),
    "skills": CommandSource(
        "library.skills", "Manage skills: check them, keep them in your library, give them to agents."
    ),
    "snapshots": CommandSource(
        "agents.snapshots",
        "Save an agent's workspace, and bring it back: `roost snapshots reset AGENT` undoes what happened last.",
    ),
    "system": CommandSource("server.system", "Look at the server as its operator, from anywhere."),
    "tasks": CommandSource("agents.tasks", "Manage scheduled tasks of agents."),
    "templates": CommandSource(
        "library.templates", "Manage templates, from which agents are made: `roost agents create --template SLUG`."
    ),
    "secrets": CommandSource("agents.secrets", "Manage secrets and variables of agents."),
    "scripts": CommandSource(
        "agents.execute:script_commands", "Show and rerun the build and start scripts of an agent's manifest."
    ),
    "files": CommandSource("storage.files", "Manage files and folders, each with its CID."),
    "groups": CommandSource("storage.groups", "Manage groups of files."),
    "gateways": CommandSource("storage.gateways", "Manage storage gateways, the addresses that serve files."),
    "pins": CommandSource("storage.cids:pin_commands", "Fetch files from the public IPFS network by their CID."),
    "payments": CommandSource("storage.payments", "Ask for payments for private files (x402), and look at them."),
    "signatures": CommandSource("storage.cids:signature_commands", "Manage wallet signatures of CIDs."),
    "swaps": CommandSource(
        "storage.cids:swap_commands",
        "Serve one CID in place of another, on gateways with plugin 2 (`roost gateways install`).",
    ),
    "vectors": CommandSource("storage.vectors", "Search the texts of files, and let agents do so."),
    "webhooks": CommandSource("storage.webhooks", "Manage webhooks, URLs that are notified of changes to your files."),
    "workspace": CommandSource(
        "agents.workspace_files", "Manage the files of an agent's workspace; `roost cp` copies them."
    ),
}
