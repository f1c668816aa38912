"""Kinds of lines and the files where they belong. Each rule has an example that breaks it, as its own test."""

from dataclasses import dataclass

from tests.architecture import line_finders
from tests.architecture.line_finders import Find, imports_from, uses


@dataclass(frozen=True)
class Rule:
    """`find` returns the matching lines; `paths` are the files that may have them; `advice` says where they belong."""

    name: str
    find: Find
    paths: tuple[str, ...]
    advice: str
    example: str


_HTTP = ("roost/web/*", "roost/http/*", "*/api.py")
_CHILDREN = ("roost/drivers/*", "roost/warden/*", "roost/core/machine/subprocess_worker.py")
_IN_CONTAINERS = (  # programs of their own
    *("roost/drivers/engine/fake/scheduler.py", "roost/drivers/engine/fake/admin_api.py"),
    *("roost/drivers/engine/fake/gateway.py", "roost/drivers/engine/fake/conversations.py"),
    "roost/drivers/engine/hermes/runs.py",
    "roost/agents/workspace/snapshots/copy_databases.py",
)
_INSTALLED = (  # engine drivers where they install software, or read a program that lies beside them
    *("roost/drivers/engine/contract.py", "roost/drivers/engine/fake/driver.py"),
    "roost/drivers/engine/package_installer.py",
    "roost/drivers/engine/version_folder.py",
    *("roost/drivers/engine/hermes/driver.py", "roost/drivers/engine/hermes/configuration.py"),
    *("roost/drivers/engine/hermes/virtual_environment.py", "roost/drivers/engine/hermes/tasks.py"),
    *("roost/drivers/engine/openclaw/driver.py", "roost/drivers/engine/openclaw/install.py"),
    "roost/drivers/engine/openclaw/compile_cache.py",
)

RULES: tuple[Rule, ...] = (
    Rule(
        "SQL",
        imports_from("sqlalchemy", "Connection"),
        ("roost/core/db/*", "roost/migrations/*", "*/store.py"),
        "SQL belongs in a package's store.py; elsewhere only the type Connection is known",
        "from sqlalchemy import select",
    ),
    Rule(
        "Alembic",
        imports_from("alembic"),
        ("roost/migrations/*",),
        "migrations belong in roost/migrations/",
        "from alembic import op",
    ),
    Rule(
        "HTTP frameworks",
        imports_from("fastapi"),
        (*_HTTP, "roost/identity/authenticator.py", "roost/storage/files/signed_urls/authenticator.py"),
        "FastAPI and its responses belong in web/, http/, an api.py, and the authenticator",
        "from fastapi.responses import JSONResponse",
    ),
    Rule(
        "ASGI",
        imports_from("starlette", "ASGIApp", "Receive", "Scope", "Send"),
        (
            *_HTTP,
            *(f"roost/identity/{name}.py" for name in ("authenticator", "auth_request")),
            "roost/storage/files/signed_urls/authenticator.py",
        ),
        "requests and responses belong in web/, http/, an api.py, and the authenticator; elsewhere only ASGI's types",
        "from starlette.responses import Response",
    ),
    Rule(
        "HTTP statuses",
        line_finders.find_status_numbers,
        _HTTP,
        "raise a Problem of your package with a kind; web/errors.py knows the status",
        "refuse(status_code=404)",
    ),
    Rule("HTTP servers", imports_from("uvicorn"), ("roost/http/*",), "uvicorn is known by http/", "import uvicorn"),
    Rule(
        "tokens' signatures",
        imports_from("jwt"),
        ("roost/identity/*",),
        "JWTs are made and read in identity/",
        "import jwt",
    ),
    Rule(
        "cryptography",
        imports_from("cryptography"),
        ("roost/core/seal.py", "roost/identity/*", "roost/drivers/runtime/tls_carrier.py"),
        "sealing is core/seal.py, keys of credentials are identity/, certificates of bridges are the carrier's",
        "from cryptography.fernet import Fernet",
    ),
    Rule(
        "the command line's libraries",
        lambda module: (line for name in ("typer", "rich", "click") for line in imports_from(name)(module)),
        ("roost/cli/*",),
        "what a person sees on a terminal is written by cli/",
        "import typer",
    ),
    Rule(
        "the environment",
        uses("os.environ", "os.environ.*", "os.getenv", "os.environb", "os.putenv"),
        (
            "roost/config.py",
            "roost/cli/client/session.py",  # variables of a client, which has no data folder to configure
            *("roost/cli/client/context_file.py", "roost/cli/server/data_folder.py"),  # the same
            "roost/cli/command_names.py",  # the variables of a shell that completes a word
            "roost/cli/fleet/commands.py",  # the variables that a file names in place of secrets
        ),
        "settings are read once, in config.py, and passed down",
        "from os import environ\nprint(environ['HOME'])",
    ),
    Rule(
        "the clock",
        uses(
            *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
            *("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.gmtime"),
        ),
        (
            *("roost/core/clock.py", "roost/warden/*", "roost/drivers/engine/hermes/scheduler.py"),
            *("roost/drivers/engine/fake/scheduler.py", "roost/drivers/engine/fake/admin_api.py"),
            *("roost/drivers/engine/fake/conversations.py", "roost/drivers/engine/fake/gateway.py"),
        ),
        "ask core/clock.py for the time, so that a test can set it",
        "from datetime import UTC, datetime\ndatetime.now(UTC)",
    ),
    Rule(
        "randomness",
        uses("uuid.uuid1", "uuid.uuid4", "uuid.uuid7", "secrets.*", "random.*", "os.urandom"),
        (
            "roost/core/ids.py",
            "roost/warden/*",
            "roost/drivers/engine/fake/scheduler.py",
            "roost/drivers/engine/fake/admin_api.py",
            "roost/drivers/engine/fake/gateway.py",
        ),
        "ids, tokens and random bytes come from core/ids.py",
        "import secrets\nsecrets.token_hex(8)",
    ),
    Rule(
        "credentials",
        line_finders.find_credentials,
        (
            "roost/identity/credentials.py",
            "roost/http/edge/*",  # takes the caller's credential off, puts the engine's own on
            "roost/cli/*",  # a client: it sends one
            "roost/drivers/model/*",  # clients of model services
            "roost/drivers/embedding/*",  # clients of embedding models
            "roost/drivers/chat_platform/*",  # clients of chat platforms
            "roost/drivers/network/*",  # clients of a kubo node
            "roost/drivers/facilitator/*",  # a client of facilitators; also the word for a signed transfer there
            "roost/drivers/runtime/kubernetes/*",  # a client of an API server
            "roost/drivers/engine/*",  # clients of an engine's gateway, and the fake one that checks
        ),
        "only identity/ reads credentials; a handler declares its caller type in its signature",
        "headers.get('Authorization')",
    ),
    Rule(
        "URL prefixes",
        line_finders.find_url_prefixes,
        (
            "roost/http/stack/url_map.py",
            "*/api.py",  # the routes themselves
            "roost/storage/compat/paths.py",  # old paths of the same routes
            "roost/storage/files/signed_urls/*",  # a signature covers the path
            "roost/agents/network/routes/model.py",  # the prefix that an agent's own programs cannot have
            "roost/agents/lifecycle/workflows/model.py",  # the URL of the model gateway in an agent's configuration
            "roost/agents/chat/service.py",  # a client of the API of engines
            "roost/agents/models/servers/service.py",  # the URL of a model server
            "roost/cli/*",  # a client of the API
            "roost/drivers/*",  # clients of other APIs
        ),
        "ask the row of the request, `rule_of(scope)`; rows are written in http/stack/url_map.py",
        "path.startswith('/v0/llm')",
    ),
    Rule(
        "tasks and threads",
        line_finders.find_tasks,
        (
            "roost/work/*",  # the loop of durable work
            "roost/core/db/*",  # the writer thread
            "roost/core/machine/threads.py",  # blocking work of minutes, of seconds
            "roost/core/periodic.py",  # the one kind of background loop
            "roost/agents/workspace/snapshots/*",  # 10,000 entries are encoded and compared beside the loop; watches
            "roost/agents/lifecycle/versions/*",  # an install or a question to a registry is shared
            "roost/http/*",  # connections live as long as their peer
            *("roost/drivers/*", "roost/warden_client/*"),  # streams and child processes
            "roost/warden/*",  # the same, in the container
            "roost/agents/lifecycle/system/service.py",  # a check that hangs outlives the request
            "roost/agents/chat/*",  # an answer is received while heartbeats are sent, and outlives its request
            "roost/agents/workspace/logs/service.py",  # one reader of a container's log for all who follow it
            "roost/web/responses.py",  # a pause races the next event
            "roost/agents/workspace/git/push.py",  # the log is read while the build is awaited
            "roost/web/websocket.py",  # what is sent races the client's leaving
            "roost/storage/content/chunk_pipeline.py",  # one piece is worked on while the next is gathered
            "roost/agents/network/egress/*",  # two directions of a tunnel
            "roost/net/*",  # racing connects, the resolver's threads
            "roost/agents/models/gateway/api.py",  # a model's work races the client's leaving
            "roost/storage/content/car_receiver.py",  # the same
            "roost/storage/content/reader.py",  # large nodes are taken apart beside the loop
            "roost/agents/models/gateway/catalog.py",  # connections of lost keys are closed later
            "roost/cli/*",
        ),
        "what outlives a request is a row in operations (roost/work), never a bare task",
        "import asyncio\nasyncio.create_task(run())",
    ),
    Rule(
        "loops that sleep",
        line_finders.find_sleeping_loops,
        (
            "roost/warden/*",  # a program of its own: standard library only
            "roost/drivers/*",  # wait with a deadline for programs that report no change
            "roost/storage/content/scrub.py",  # limits the rate of its reads
        ),
        "a background loop is a PeriodicTask, a wait between attempts is a Backoff (core/periodic.py)",
        "import asyncio\nasync def watch():\n    while True:\n        await asyncio.sleep(5)",
    ),
    Rule(
        "child processes",
        uses(
            *("subprocess.*", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
            *("os.system", "os.popen", "os.fork", "os.posix_spawn", "os.execv", "os.execve", "os.execvpe", "os.spawnv"),
        ),
        (*_CHILDREN, "roost/cli/agents/copy.py"),  # the user's own Git
        "only drivers (on the host), the warden (in a container) and core/subprocess_worker.py run programs",
        "import subprocess\nsubprocess.run(['true'])",
    ),
    Rule(
        "files and sockets of this machine",
        uses("open", "os.*", "io.*", "pathlib.*", "shutil.*", "socket.*", "tarfile.*", "tempfile.*"),
        (
            *(
                "roost/config*",
                "roost/settings.py",
                "roost/setting_types.py",
                "roost/keyring.py",
                *("roost/core/*", "roost/net/*", "roost/web/*", "roost/work/*"),
                "roost/identity/*",
            ),
            *("roost/storage/*", "roost/drivers/[!er]*", "roost/http/*", "roost/app/*", "roost/cli/*"),
            *("roost/migrations/*", "roost/warden/*"),
            *("roost/drivers/runtime/bwrap/*", "roost/drivers/runtime/fake.py", "roost/drivers/embedding/*"),
            "roost/drivers/runtime/landlock/*",
            *("roost/drivers/runtime/docker/*", "roost/drivers/runtime/probe_facts.py"),  # a socket, and our namespaces
            "roost/drivers/runtime/kubernetes/*",  # files of credentials, options of sockets
            "roost/drivers/runtime/tls_carrier.py",  # a file in memory, for a module that reads keys from files
            "roost/drivers/runtime/loopback_namespace.py",  # part of the fake
            "roost/agents/lifecycle/workflows/trusted_authorities.py",  # reads the operator's `ca_file`
            "roost/agents/workspace/snapshots/state_tree.py",  # reads the program that copies databases
            *_IN_CONTAINERS,
            *_INSTALLED,
        ),
        "an agent's files are read and written through its warden; the runtime contract names nothing of a host",
        "from pathlib import Path\nPath('agents/ada/workspace/notes').read_text()",
    ),
    Rule(
        "camelCase",
        line_finders.find_camel_case,
        (
            *(
                "*/schemas.py",
                "*/api.py",
                "roost/web/*",
                "roost/http/*",
                "roost/identity/authenticator.py",
            ),
            *(
                "roost/cli/*",
                "roost/drivers/*",
                "roost/warden_client/*",
                "roost/warden/*",
                "roost/agents/workspace/logs/model.py",  # the lines of engines
                "roost/agents/library/skills/skill_wants.py",  # metadata of engines
            ),  # speak other programs' formats, or our API as clients
        ),
        "the API's spelling of fields belongs in schemas.py; the model says snake_case",
        "row['createdAt']",
    ),
    Rule(
        "inner imports",
        line_finders.find_inner_imports,
        (
            "roost/cli/*",
            "roost/drivers/*",
            "roost/migrations/*",
            "roost/warden/service.py",
            "roost/warden/tree_operations.py",
        ),
        "import at the top of the module; only the command line, drivers, the warden and migrations load late",
        "def run():\n    import json",
    ),
    Rule(
        "print",
        uses("print"),
        ("roost/cli/*", "roost/warden/*"),
        "log with core/log.py, or let cli/ show it",
        "print('here')",
    ),
    Rule(
        "exemptions without a reason",
        line_finders.find_bare_exemptions,
        (),
        "say after the exemption why it is right: `# noqa: X123 - the reason`",
        "x = 1  # noqa: E501",
    ),
    Rule(
        "packed literals",
        line_finders.find_packed_literals,
        (),
        "write an item a line, or words as text with `.split()`: a star around a literal only pleases the formatter",
        'NAMES = (*("a", "b"), "c")',
    ),
)
