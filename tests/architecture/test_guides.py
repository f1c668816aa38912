"""Numbers and lists in the guides are those of the code.

A row has words of the page, constants of `roost` that make them true, and their values.
"""

import importlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from roost.identity.caller import Plan
from roost.work.model import OperationLimits
from tests.architecture.code import ROOT

KIB, MIB, GIB = 1024, 1024**2, 1024**3
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

PAGES: Mapping[str, Sequence[tuple[str, str, Any]]] = {
    "internet": [
        ("then four, sixteen, sixty", "drivers.tls_proxy.certificate_failures:_PAUSES", ((60, 240, 960, 3600),)),
        ("limited to 64 KiB and 20 s", "drivers.tls_proxy.caddy_config:_HEAD_BYTES _HEAD_SECONDS", (64 * KIB, 20)),
    ],
    "kubernetes": [
        ("the same, to port 8797 only", "drivers.runtime.contract:BRIDGE_PORT", 8797),
        ("that tries, for up to 10 s,", "drivers.runtime.kubernetes.probe:_SETTLE_SECONDS", 10),
        ("after a minute at the earliest", "drivers.runtime.kubernetes.driver:_RECHECK_SECONDS", 60),
        ("wait, up to a quarter of an hour", "drivers.runtime.kubernetes.driver:_PULL_SECONDS", 900),
        ("every ten minutes as it was", "drivers.runtime.kubernetes.maintenance:_PERIOD_SECONDS", 600),
    ],
    "logs": [
        ("returns the last 100 lines", "agents.workspace.logs.model:LINE_LIMIT", 100),
        ("searches the last 1,000 lines", "agents.workspace.logs.service:_FILTERED_LINES", 1000),
        ("more than 256 streams of one agent", "agents.workspace.logs.service:MAX_READERS", 256),
        ("Lines longer than 16 KiB are cut", "warden.supervised_process:MAX_LINE_BYTES", 16 * KIB),
        (
            "the server keeps 1,000 lines or 1 MiB",
            "agents.workspace.logs.service:_MAX_MESSAGES _MAX_CHARS",
            (1000, MIB),
        ),
        ("reads nothing for 10 s is disconnected", "http.server.server:_DRAIN_TIMEOUT", 10),
    ],
    "models": [
        ("the first 500 characters of the user's message", "drivers.model.scripted:_MAX_ECHO_LENGTH", 500),
        ("the first 2,000 characters of its result", "drivers.model.scripted:_MAX_RESULT_LENGTH", 2000),
        (
            "answers with N words (1 to 2000), 50 ms apart",
            "drivers.model.scripted:_MAX_SLOW_WORDS _SLOW_PAUSE_SECONDS",
            (2000, 0.05),
        ),
        ("at most every 30 seconds", "agents.models.gateway.catalog:_TTL_SECONDS", 30),
        ("A request without `max_tokens` gets 8192", "drivers.model.anthropic.request:MAX_TOKENS", 8192),
        (
            "Listing waits at most 5 s for an agent's provider and then leaves it alone for 30 s",
            "agents.models.gateway.catalog:_AGENT_LIST_SECONDS _AGENT_FAILURE_TTL_SECONDS",
            (5, 30),
        ),
        (
            "connections for 256 agents at a time, with 16 providers each",
            "agents.models.gateway.catalog:MAX_AGENTS MAX_PROVIDERS",
            (256, 16),
        ),
        ("Engines see at most 1000 ids", "agents.models.gateway.model:MAX_OFFERED_MODELS", 1000),
        ("Roost waits 10 s for a connection", "drivers.model.remote:CONNECT_SECONDS", 10),
        ("Provider messages are cut to 500 characters", "drivers.model.remote:_MAX_MESSAGE_LENGTH", 500),
        (
            "32 requests running and 64 MiB of bodies in flight (429 beyond). A body may have 32 MiB",
            "agents.models.gateway.model:MAX_CONCURRENT_REQUESTS MAX_CONCURRENT_BYTES MAX_BODY_BYTES",
            (32, 64 * MIB, 32 * MIB),
        ),
        (
            "100,000 JSON values and 60 s to arrive",
            "web.json_tokens:VALUES_LIMIT agents.models.gateway.model:BODY_TIMEOUT_SECONDS",
            (100_000, 60),
        ),
        ("Counts are written once a second", "agents.models.gateway.service:_FLUSH_SECONDS", 1),
        (
            "a period has at most 366 days, and the last 30 by default",
            "agents.models.usage.model:DAYS_LIMIT DEFAULT_DAYS",
            (366, 30),
        ),
        ("only the 100 models and agents with most tokens", "agents.models.usage.model:ROWS_LIMIT", 100),
    ],
    "move-an-agent": [
        ("blocks; files and folders | 250,000 each", "storage.content.car_receiver:MAX_BLOCKS", 250_000),
        ("`manifest.json` | 1 MiB", "agents.workspace.scripts.model:MANIFEST_LIMIT", MIB),
    ],
    "no-domain": [("a range of at most 1000 ports", "setting_types:_PORTS_LIMIT", 1000)],
    "operating": [
        ("a clean stop gives each agent 3 s to finish", "agents.lifecycle.workflows.gateway:STOP_SECONDS", 3),
        (
            "20 times the weight of all agents together, each sandbox (Git, images, documents) 5 times",
            "drivers.runtime.bwrap.cgroup:SERVER_WEIGHT SANDBOX_WEIGHT",
            (20, 5),
        ),
        (
            "within the last 10 s have 20 times the weight of others",
            "drivers.runtime.bwrap.driver:_PREFERRED_SECONDS PREFERRED_WEIGHT",
            (10, 20),
        ),
        (
            "agents run at the nice value 19",
            "drivers.runtime.bwrap.start:_NICE_WITHOUT_WEIGHTS warden.processes:NICE_LEVELS",
            (10, 9),
        ),
        ("(`oom_score_adj` 500)", "drivers.runtime.bwrap.start:_AGENT_OOM_SCORE", 500),
        ("The server has -900", "core.machine.process_priority:_SERVER_OOM", -900),
        ("within 30 s after it was killed", "agents.lifecycle.hosts.model:HOST_TIMEOUT", timedelta(seconds=30)),
        ("cannot be used within 5 s", "http.server.health:CHECK_SECONDS", 5),
        (
            "less than 64 MiB is free | `/readyz` fails; below 32 MiB uploads are refused",
            "core.machine.disk_space:READY_RESERVE UPLOAD_RESERVE",
            (64 * MIB, 32 * MIB),
        ),
        ("ballast (64 MiB in the file `ballast`)", "core.machine.disk_space:BALLAST_BYTES", 64 * MIB),
        ("at most a sixteenth of the disk", "core.machine.disk_space:_LARGEST_SHARE", 16),
        (
            "reads the free space every second and counts the files of running agents every ten minutes",
            "agents.lifecycle.workflows.disk_guard:_WATCH_SECONDS _MEASURE_SECONDS",
            (1, 600),
        ),
        (
            "more than 2 million files or folders nested more than 100 deep",
            "drivers.runtime.bwrap.disk_meter:_MAX_ENTRIES _MAX_DEPTH",
            (2_000_000, 100),
        ),
        (
            "once in 30 days, at no more than 16 MiB/s and a fifth of the time",
            "storage.content.scrub:RECHECK_AFTER BYTES_PER_SECOND BUSY_SHARE",
            (30 * DAY, 16 * MIB, 0.2),
        ),
        (
            "a sweep that runs once an hour and spares packs younger than a day",
            "storage.content.service:SWEEP_INTERVAL storage.content.model:ABANDONED_AFTER",
            (HOUR, DAY),
        ),
        ("counted every five minutes", "storage.content.service:TOTALS_INTERVAL", HOUR / 12),
        ("once a minute (`outage.reported`", "core.outage:_REPEAT_SECONDS", 60),
    ],
    "payments": [
        ("An instruction has 1 to 20 requirements", "storage.payments.instructions.model:REQUIREMENTS_LIMIT", 20),
        (
            "text shown to the payer, up to 255 characters",
            "storage.payments.instructions.model:REQUIREMENT_DESCRIPTION_LIMIT",
            255,
        ),
        ("It is valid now, and for 6 s more", "storage.payments.model:VALIDITY_MARGIN_SECONDS", 6),
        ("A payment has at most 16 KiB", "storage.payments.forms:HEADER_LIMIT", 16 * KIB),
        ("after 30 s the same payment can be presented again", "storage.payments.model:CLAIM_SECONDS", 30),
        ("10 s to verify and 25 s to settle", "drivers.facilitator.contract:VERIFY_SECONDS SETTLE_SECONDS", (10, 25)),
        ("in the newest 2,000 blocks", "drivers.facilitator.local:_SEARCHED_BLOCKS", 2000),
        ("not in a block after 20 s is pending", "drivers.facilitator.local:_RECEIPT_SECONDS", 20),
    ],
    "pins": [
        ("Two requests of a tenant", "storage.pins.retrieve:LIMITS", OperationLimits(4, 2, 2)),
        ("250 other requests of yours", "storage.pins.model:QUEUE_LIMIT", 250),
        ("not found within a day", "storage.pins.model:SEARCH_DURATION", DAY),
        ("a failed one stays for 30 days", "storage.pins.model:FAILURE_RETENTION", 30 * DAY),
        (
            "retried after 1 s, 2 s, 4 s ... 5 min",
            "work.model:_FIRST_RETRY _LONGEST_RETRY",
            (timedelta(seconds=1), timedelta(minutes=5)),
        ),
        (
            "silent for 30 s (kubo: 60 s",
            "drivers.network.trustless:IDLE_SECONDS drivers.network.kubo:IDLE_SECONDS",
            (30, 60),
        ),
        ("sends less than 1 MiB in 90 s", "storage.pins.retrieve:PROGRESS_BYTES PROGRESS_TIMEOUT", (MIB, 90)),
    ],
    "scripts": [
        (
            "JSON of at most 1 MiB, a script has at most 64 KiB",
            "agents.workspace.scripts.model:MANIFEST_LIMIT SCRIPT_LIMIT",
            (MIB, 64 * KIB),
        ),
        ("for at most 5 minutes", "agents.workspace.scripts.model:BUILD_TIMEOUT_SECONDS", 300),
        (
            "restarted after 1, 2, 4 ... 30 seconds",
            "warden.supervised_process:RESTART_DELAY MAX_RESTART_DELAY",
            (1, 30),
        ),
    ],
    "secrets": [
        ("a name has 1 to 128 characters", "agents.setup.secrets.model:NAME_LIMIT", 128),
        (
            "1 byte to 64 KiB without NUL; all values of an agent together have at most 128 KiB",
            "agents.setup.secrets.model:VALUE_LIMIT AGENT_BYTES_LIMIT",
            (64 * KIB, 128 * KIB),
        ),
        (
            "10 secrets on the free plan, 100 on the paid plan",
            "agents.setup.secrets.model:SECRET_LIMIT",
            {Plan.FREE: 10, Plan.PAID: 100},
        ),
    ],
    "skills": [
        ("attaches up to ten of them to each agent", "agents.library.skills.model:ATTACHED_LIMIT", 10),
        (
            "A bundle has at most 200 files and 10 MB",
            "agents.library.skills.bundle:FILES_LIMIT BYTES_LIMIT",
            (200, 10_000_000),
        ),
        ("takes more than 0.75 s of CPU", "agents.library.skills.verdict.check:CPU_LIMIT", 0.75),
    ],
    "snapshots": [
        ("`skipped` names the first 100", "agents.workspace.snapshots.model:SKIPPED_LIMIT", 100),
        ("lists the files that differ (1,000 at most)", "agents.workspace.snapshots.stored_trees:_CHANGES_LIMIT", 1000),
        ("lists ten snapshots", "agents.workspace.snapshots.model:PAGE_SIZE", 10),
        ("at the latest ten minutes after the first one", "agents.workspace.snapshots.automatic:_LONGEST_DELAYS", 10),
        ("of less than 8 bytes it is not searched", "agents.workspace.snapshots.secret_search:SHORTEST_VALUE", 8),
        ("1 to 255 bytes, any but `/` and NUL", "warden_client.tree_rules:MAX_NAME_BYTES", 255),
        ("at most 256 parts and 4,084 bytes", "warden_client.tree_rules:MAX_PARTS MAX_PATH_BYTES", (256, 4084)),
        ("a target of 1 to 4,095 bytes", "warden_client.tree_rules:MAX_LINK_BYTES", 4095),
        (
            "at most 100,000 entries in a folder and 1,000,000 in all",
            "warden_client.tree_rules:MAX_FOLDER_ENTRIES MAX_TREE_ENTRIES",
            (100_000, 1_000_000),
        ),
        ("One of more than 1 GiB", "agents.workspace.snapshots.copy_databases:_LARGEST", GIB),
        (
            "All of the last day, the last of each day for 31 days",
            "agents.workspace.snapshots.model:_KEEP_ALL _KEEP_DAILY",
            (DAY, 31 * DAY),
        ),
    ],
    "storage": [
        ("250,000, with 500,000 links", "storage.content.car_receiver:MAX_BLOCKS MAX_LINKS", (250_000, 500_000)),
        (
            "30,000, each with a path of at most 32 names",
            "storage.files.uploads.model:FILES_LIMIT DEPTH_LIMIT",
            (30_000, 32),
        ),
        (
            "10; keys of 255 and values of 1,024 characters, 2,600 bytes together",
            "storage.files.model:KEYVALUES_LIMIT KEY_LIMIT VALUE_LIMIT PAIR_BYTES",
            (10, 255, 1024, 2600),
        ),
        ("100, each for 24 hours", "storage.files.tus.model:UNFINISHED_LIMIT LIFETIME", (100, DAY)),
    ],
    "storage-gateways": [
        ("it can have 20", "storage.gateways.model:GATEWAY_LIMIT", 20),
        ("a page with its first 5,000 entries", "http.storage_gateway.directory_listing:ENTRY_LIMIT", 5000),
        ("or up to 16 as `multipart/byteranges`", "http.storage_gateway.range_requests:_RANGES_LIMIT", 16),
        ("after the first 5,000 entries", "storage.content.tar_archive:CHECKED_MEMBERS", 5000),
        ("more than 100,000 entries", "storage.content.tar_archive:MAX_MEMBERS", 100_000),
        (
            "up to 64 KiB without access controls stay in memory (16 MiB) for half a second",
            "http.storage_gateway.response_cache:MAX_BODY _MAX_BYTES _LIFETIME_SECONDS",
            (64 * KIB, 16 * MIB, 0.5),
        ),
        (
            "at most 64 KiB and 1,000 rules",
            "http.storage_gateway.redirects_file:MAX_FILE_BYTES _MAX_RULES",
            (64 * KIB, 1000),
        ),
        ("pixels, up to 8,192", "drivers.image.contract:SIDE_LIMIT", 8192),
        (
            "at most 32 MiB and 50 million pixels",
            "drivers.image.contract:SOURCE_LIMIT PIXEL_LIMIT",
            (32 * MIB, 50_000_000),
        ),
        ("and 10 seconds, in a [sandbox]", "drivers.image.pillow:_TIMEOUT_SECONDS", 10),
        ("User agents are cut at 200 characters", "storage.gateways.analytics.model:MAX_USER_AGENT", 200),
        (
            "5,000 lines with all attributes, then 5,000",
            "storage.gateways.analytics.model:DETAILED_ROWS CID_ROWS",
            (5000, 5000),
        ),
        ("Counts are written every two seconds", "storage.gateways.analytics.service:_INTERVAL_SECONDS", 2),
    ],
    "tasks": [
        (
            "more than ten years away, intervals under a minute",
            "agents.setup.tasks.schedules:MAX_AHEAD MIN_INTERVAL",
            (timedelta(days=3660), HOUR / 60),
        ),
        ("at most 20 tasks", "agents.setup.tasks.model:TASK_LIMIT", 20),
        ("16,000 characters", "agents.setup.tasks.model:TEXT_LIMIT", 16_000),
    ],
    "templates": [
        ("Errors come all at once, 50 at most", "agents.library.templates.manifest:FAULTS_LIMIT", 50),
        (
            "name 100, description 10,000, vibe 200, emoji 32 characters",
            "agents.registry.model:NAME_LIMIT DESCRIPTION_LIMIT VIBE_LIMIT EMOJI_LIMIT",
            (100, 10_000, 200, 32),
        ),
        ("30 names without values", "agents.library.templates.manifest:SECRETS_LIMIT", 30),
        ("10, each with either `cid` or `clawhub_slug`", "agents.library.templates.manifest:SKILLS_LIMIT", 10),
        (
            "10; ports 1025 to 65535 except 18789",
            (
                "agents.library.templates.manifest:ROUTES_LIMIT "
                "agents.network.routes.model:LOWEST_PORT HIGHEST_PORT GATEWAY_PORT"
            ),
            (10, 1025, 65535, 18789),
        ),
        ("the newest 10 versions are kept", "agents.library.templates.model:KEPT_VERSIONS", 10),
        (
            "pack of the commit, and its files together | 64 MiB each",
            "drivers.git.remote_contract:MAX_REMOTE_BYTES",
            64 * MIB,
        ),
        ("files | 5,000", "drivers.git.remote_contract:MAX_REMOTE_ENTRIES", 5000),
        ("branches and tags | 5,000", "drivers.git.remote_contract:MAX_REMOTE_REFS", 5000),
        ("README | 256 KiB", "agents.library.templates.model:README_LIMIT", 256 * KIB),
        (
            "20 s without an answer, 120 s in all",
            "drivers.git.remote_client:_IDLE_SECONDS drivers.git.remote:_FETCH_SECONDS",
            (20, 120),
        ),
        ("2 of a tenant, 8 in all", "drivers.git.remote:_EACH _TOTAL", (2, 8)),
        ("templates of a tenant | 200", "agents.library.templates.model:TEMPLATE_LIMIT", 200),
    ],
    "terminal": [
        ("at most 8 sessions", "warden.terminal:MAX_TERMINALS", 8),
        (
            "A session without a connection ends after 60 seconds",
            "agents.workspace.commands.service:GRACE_SECONDS",
            60,
        ),
        ("size, 1 to 1000", "agents.workspace.commands.service:SIZE_LIMIT", 1000),
        ("at most 16 KiB a message", "http.server.server:MESSAGE_LIMIT", 16 * KIB),
        (
            "at most 64 KiB (and one read) of output are beyond the last one. The last 256 KiB",
            "warden.terminal:WINDOW_BYTES RING_BYTES",
            (64 * KIB, 256 * KIB),
        ),
    ],
    "uploads": [
        ("It is valid for 24 hours", "storage.files.tus.model:LIFETIME", DAY),
        ("a crash loses at most 64 MiB of them", "storage.files.tus.model:SAVE_EVERY", 64 * MIB),
        ("100 unfinished uploads", "storage.files.tus.model:UNFINISHED_LIMIT", 100),
        ("(at most a year)", "storage.files.signed_urls.model:_MAX_VALIDITY", 366 * DAY),
    ],
    "vector-formats": [
        ("the limit is 67,108,864", "drivers.text_extractor.contract:SOURCE_LIMIT", 67_108_864),
        ("text | 4,194,304 characters", "drivers.text_extractor.contract:TEXT_LIMIT", 4_194_304),
        ("more than 268,435,456 bytes", "drivers.text_extractor.contract:UNPACKED_LIMIT", 268_435_456),
        ("256 MiB, 10,000 files", "drivers.text_extractor.formats.detection:_MAX_MEMBERS", 10_000),
        ("Reading the document takes more than 30 s", "drivers.text_extractor.contract:TIME_LIMIT_SECONDS", 30),
        ("Two documents are read at a time", "drivers.text_extractor.sandboxed:_PROCESSES", 2),
        ("and 32 wait", "drivers.text_extractor.sandboxed:_MAX_WAITING", 32),
        ("the first 256 tokens of a text", "drivers.embedding.minilm_worker:_MAX_TOKENS", 256),
        ("after five minutes without one", "drivers.embedding.minilm:_IDLE_SECONDS", 300),
        ("It uses two threads", "drivers.embedding.minilm_worker:_THREADS", 2),
        ("tried four times within half a minute", "drivers.embedding.openai:_PAUSES", ((0.5, 2.0, 8.0),)),
    ],
    "vectors": [
        ("2 of a tenant, 4 in all, on each server", "storage.vectors.indexing:LIMITS", OperationLimits(4, 2, 2)),
        ("at most 800 characters", "drivers.embedding.contract:CHUNK_CHARACTERS", 800),
        ("after 20 seconds with the state", "storage.vectors.service:WAIT_SECONDS", 20),
        ("tried again, 8 times over four minutes", "storage.vectors.indexing:RETRIES", 8),
        (
            "chunks of a tenant | 10,000 free, 100,000 paid",
            "storage.vectors.model:PLAN_CHUNKS",
            {Plan.FREE: 10_000, Plan.PAID: 100_000},
        ),
        ("10,000 chunks | `failed`", "storage.vectors.model:CHUNKS_LIMIT", 10_000),
        ("4,000 characters, not blank", "storage.vectors.model:QUERY_CHARACTERS", 4000),
        ("results of a query | 20", "storage.vectors.model:MATCHES_LIMIT", 20),
        ("in rows of 64 chunks", "storage.vectors.model:SEGMENT_CHUNKS", 64),
    ],
    "webhooks": [
        ("within 15 seconds", "drivers.http_sender.contract:TIMEOUT", 15),
        ("at most 16 KiB is read", "drivers.http_sender.guarded:_DRAIN_BYTES", 16 * KIB),
        (
            "after 5 seconds, 5 minutes, 30 minutes, 2, 5, 10 and 14 hours, each up to a fifth later: eight attempts",
            "storage.webhooks.model:_RETRY_DELAYS _JITTER MAX_ATTEMPTS",
            ((timedelta(seconds=5), HOUR / 12, HOUR / 2, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR), 0.2, 8),
        ),
        (
            "4 messages to one webhook, 16 of one tenant and 64 in all",
            "storage.webhooks.model:SENDING_LIMITS",
            OperationLimits(total=64, per_tenant=16, per_subject=4),
        ),
        ("nothing was accepted for 5 days", "storage.webhooks.model:DISABLE_AFTER", 5 * DAY),
        ("kept for 7 days", "storage.webhooks.model:RETENTION", 7 * DAY),
        ("with each, of at most three", "storage.webhooks.model:SECRET_OVERLAP SECRETS_LIMIT", (DAY, 3)),
    ],
}


@pytest.mark.parametrize("page", PAGES)
def test_numbers_of_a_guide_are_those_of_the_code(page: str) -> None:
    text = " ".join((ROOT / f"docs/guides/{page}.md").read_text().split())
    for words, names, found in PAGES[page]:
        assert words in text
        values = cast("Sequence[object]", found if isinstance(found, tuple) else (found,))
        module = ""
        for name, value in zip(names.split(), values, strict=True):
            module, _, constant = name.rpartition(":") if ":" in name else (module, "", name)
            assert getattr(importlib.import_module(f"roost.{module}"), constant) == value, name
