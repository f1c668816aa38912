"""Tests mirror the package, so that the tests of a module are found by its path."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from tests.architecture.code import ROOT, Module, modules

LONG_ENOUGH = 60

TESTED_ELSEWHERE: Mapping[str, str] = {
    # modules: the tests that cover them, where the mirrored path would be the wrong place
    "roost/drivers/tls_proxy/caddy.py": "tests/journeys/test_tls.py",  # in front of a whole server
    "roost/warden_client/tree_copy.py": "tests/agents/lifecycle/workflows/test_move.py",
    "roost/agents/lifecycle/hosts/store.py": "tests/agents/lifecycle/hosts/test_service.py",
    "roost/drivers/runtime/peer_contract.py": "tests/drivers/runtime/test_tls_peers.py",
    "roost/drivers/tls_proxy/contract.py": "tests/journeys/test_tls.py",
    "roost/app/*.py": "tests/journeys/test_first_run.py",  # what it builds is a running server
    "roost/cli/*.py": "tests/journeys/test_command_line.py",  # typed as a person types it
    "roost/agents/*/errors.py": "tests/contract/test_*.py",  # messages; the contract's tests ask for them
    "roost/storage/*/errors.py": "tests/storage/*/test_*.py",  # messages, tested where they are raised
    "roost/http/server/application.py": "tests/architecture/test_api_page.py",  # its routes
    "roost/storage/compat/*.py": "tests/contract/test_storage_legacy.py",
    "roost/storage/files/api.py": "tests/contract/test_storage_legacy.py",
    "roost/storage/gateways/swaps/api.py": "tests/contract/test_storage_legacy.py",
    "roost/storage/files/uploads/*.py": "tests/contract/test_storage_uploads.py",
    "roost/agents/lifecycle/workflows/*.py": "tests/contract/test_agents.py",  # workflows, tested over HTTP
    "roost/agents/chat/conversations.py": "tests/contract/test_conversations.py",
    "roost/agents/chat/api.py": "tests/contract/test_conversations.py",
    "roost/drivers/engine/abilities/chat.py": "tests/conformance/test_engine_chat.py",
    "roost/drivers/engine/fake/abilities.py": "tests/conformance/test_*.py",  # its contracts' suites
    "roost/drivers/engine/fake/conversations.py": "tests/conformance/test_engine_chat.py",
    "roost/agents/workspace/commands/service.py": "tests/contract/test_workspace.py",
    "roost/agents/lifecycle/system/*.py": "tests/contract/test_system.py",
    "roost/agents/lifecycle/versions/api.py": "tests/contract/test_versions.py",
    "roost/events/api.py": "tests/contract/test_events.py",
    "roost/agents/workspace/commands/api.py": "tests/contract/test_command_stream.py",
    "roost/agents/lifecycle/archives/*.py": "tests/contract/test_archives.py",  # between two servers
    "roost/agents/workspace/git/*.py": "tests/contract/test_git.py",  # with the real client
    "roost/agents/workspace/files/*.py": "tests/contract/test_files.py",
    "roost/agents/registry/store.py": "tests/agents/registry/test_repository.py",  # SQL, through the verbs that use it
    "roost/agents/setup/channels/*.py": "tests/contract/test_channels.py",
    "roost/drivers/engine/abilities/channels.py": "tests/contract/test_channels.py",
    "roost/agents/setup/tasks/*.py": "tests/contract/test_tasks.py",
    "roost/agents/library/templates/*.py": "tests/contract/test_templates.py",
    "roost/drivers/git/remote*.py": "tests/drivers/git/test_remote.py",
    "roost/agents/network/routes/service.py": "tests/contract/test_routes.py",
    "roost/agents/network/domains/*.py": "tests/contract/test_domains.py",
    "roost/setting_types.py": "tests/test_config.py",
    "roost/settings.py": "tests/test_config.py",
    "roost/kubernetes_settings.py": "tests/app/test_kubernetes_settings.py",
    "roost/drivers/facilitator/x402_sdk.py": "tests/drivers/facilitator/test_x402_client.py",
    "roost/drivers/facilitator/fake.py": "tests/conformance/test_facilitator.py",
    "roost/storage/payments/model.py": "tests/storage/payments/test_service.py",  # data
    "roost/storage/payments/api.py": "tests/contract/payments/test_payments.py",
    "roost/domain_names/model.py": "tests/domain_names/test_service.py",
    "roost/domain_names/store.py": "tests/domain_names/test_service.py",
    "roost/agents/setup/devices/*.py": "tests/contract/test_devices.py",
    "roost/agents/setup/runtime_config/*.py": "tests/contract/test_runtime_config.py",
    "roost/drivers/engine/abilities/devices.py": "tests/conformance/test_devices_and_configuration.py",
    "roost/drivers/engine/abilities/configuration.py": "tests/conformance/test_devices_and_configuration.py",
    "roost/drivers/engine/*/configuration.py": "tests/conformance/test_devices_and_configuration.py",
    "roost/drivers/engine/fake/admin_api.py": "tests/conformance/test_devices_and_configuration.py",
    "roost/drivers/engine/abilities/tasks.py": "tests/conformance/test_tasks.py",
    "roost/drivers/engine/*/tasks.py": "tests/conformance/test_tasks.py",
    "roost/agents/workspace/snapshots/*.py": "tests/contract/test_snapshots.py",  # one workflow, tested over HTTP
    "roost/drivers/engine/abilities/saved_state.py": "tests/drivers/engine/test_saved_state.py",
    "roost/agents/library/skills/verdict/*.py": "tests/agents/library/skills/verdict/test_check.py",  # all rules
    "roost/web/multipart.py": "tests/storage/files/uploads/test_multipart.py",  # needs an upload
    "roost/agents/library/hub/*.py": "tests/contract/test_hub.py",
    "roost/agents/library/hub/clawhub/*.py": "tests/clients/test_clawhub.py",  # the protocol's own client
    "roost/migrations/versions/0030_hub.py": "tests/migrations/test_match.py",
    "roost/agents/library/skills/store.py": "tests/contract/test_skills.py",
    "roost/agents/library/skills/stored_bundle.py": "tests/contract/test_skills.py",
    "roost/agents/library/skills/schemas.py": "tests/contract/test_skills.py",
    "roost/agents/library/skills/api.py": "tests/contract/test_skills.py",
    "roost/agents/library/skills/delivery.py": "tests/contract/test_agent_skills.py",
    "roost/drivers/model/provider_error.py": "tests/drivers/model/test_remote.py",
    "roost/drivers/model/history.py": "tests/drivers/model/test_histories.py",
    "roost/agents/models/keys/*.py": "tests/contract/test_model_keys.py",  # with providers that answer
    "roost/agents/setup/secrets/provider_keys.py": "tests/contract/test_model_keys.py",
    "roost/agents/setup/secrets/sealed_secrets.py": "tests/agents/setup/secrets/test_service.py",
    "roost/agents/setup/secrets/store.py": "tests/agents/setup/secrets/test_service.py",
    "roost/agents/setup/secrets/api.py": "tests/contract/test_secrets.py",
    "roost/identity/errors.py": "tests/identity/test_authenticator.py",  # raised there
    "roost/identity/model.py": "tests/contract/test_storage_keys.py",
    "roost/identity/api.py": "tests/contract/test_storage_keys.py",
    "roost/identity/sessions/store.py": "tests/identity/sessions/test_service.py",
    "roost/identity/sessions/schemas.py": "tests/contract/test_sessions.py",
    "roost/identity/sessions/api.py": "tests/contract/test_sessions.py",
    "roost/agents/workspace/logs/api.py": "tests/contract/test_log_stream.py",
    "roost/web/websocket.py": "tests/contract/test_log_stream.py",  # needs a server and clients
    "roost/net/errors.py": "tests/net/test_dialer.py",  # raised there
    "roost/warden_client/errors.py": "tests/warden_client/test_client.py",  # raised there
    "roost/warden_client/connection.py": "tests/warden_client/test_client.py",  # its part
    "roost/warden_client/files.py": "tests/conformance/test_container_files.py",
    "roost/warden_client/tree.py": "tests/conformance/test_container_trees.py",
    "roost/warden_client/changes.py": "tests/conformance/test_container_trees.py",
    "roost/http/storage_gateway/*.py": "tests/http/storage_gateway/test_application.py",  # tested over HTTP
    "roost/http/edge/*.py": "tests/http/edge/test_*.py",  # one state machine, tested over connections
    "roost/http/server/*_exchange.py": "tests/http/edge/test_asgi_exchange.py",  # over connections of the edge
    "roost/http/server/http_connection.py": "tests/http/edge/test_http_connection.py",
    "roost/http/server/request_head.py": "tests/http/edge/test_request_head.py",
    "roost/warden/*.py": "tests/warden/test_*.py",  # one program, tested through its socket
    "roost/drivers/runtime/probe_facts.py": "tests/drivers/runtime/bwrap/test_probe.py",  # its part
    "roost/drivers/runtime/kubernetes/agent_objects.py": "tests/drivers/runtime/kubernetes/test_driver.py",
    "roost/drivers/runtime/kubernetes/probe.py": "tests/drivers/runtime/kubernetes/test_driver.py",
    "roost/drivers/runtime/docker/archives.py": "tests/drivers/runtime/docker/test_images.py",
    "roost/drivers/runtime/docker/volumes.py": "tests/drivers/runtime/docker/test_images.py",
    "roost/drivers/runtime/docker/carrier.py": "tests/conformance/test_runtime.py",  # with a real engine
    "roost/drivers/runtime/docker/driver.py": "tests/conformance/test_runtime.py",  # as above
    "roost/drivers/image/*.py": "tests/conformance/test_image.py",  # a program and who speaks to it
    "roost/drivers/embedding/minilm_worker.py": "tests/drivers/embedding/test_minilm.py",  # its program
    "roost/drivers/sandbox/forked_requests.py": "tests/drivers/text_extractor/test_sandboxed.py",  # a program's loop
    "roost/drivers/runtime/landlock/confine.py": "tests/conformance/test_sandbox.py",  # its program
    "roost/drivers/git/*.py": "tests/conformance/test_git_push.py",  # scripts and who speaks to them
    "roost/storage/content/model.py": "tests/storage/content/test_reader.py",  # rows, there and back
    "roost/storage/files/tus/*.py": "tests/storage/files/tus/test_api.py",  # one state machine, tested over HTTP
    "roost/storage/pins/model.py": "tests/storage/pins/test_service.py",
    "roost/storage/compat/psa/*.py": "tests/contract/test_psa.py",
    "roost/storage/webhooks/api.py": "tests/contract/test_webhooks.py",
    "roost/storage/webhooks/store.py": "tests/storage/webhooks/test_service.py",
    "roost/drivers/http_sender/guarded.py": "tests/conformance/test_http_sender.py",  # its contract's suite, and more
    "roost/migrations/versions/0015_webhooks.py": "tests/migrations/test_match.py",
    "roost/migrations/versions/0027_skills.py": "tests/migrations/test_match.py",
    "roost/drivers/network/trustless.py": "tests/conformance/test_network.py",  # its contract's suite, and more
    "roost/storage/vectors/*.py": "tests/contract/test_vectors.py",
    "roost/storage/vectors/store.py": "tests/storage/vectors/test_vector_index.py",
    "roost/migrations/versions/0039_vectors.py": "tests/migrations/test_match.py",
    "roost/storage/payments/instructions/api.py": "tests/contract/test_payment_instructions.py",
    "roost/storage/payments/instructions/store.py": "tests/storage/payments/instructions/test_service.py",
    "roost/storage/gateways/analytics/*.py": "tests/contract/test_analytics.py",
    "roost/storage/gateways/analytics/store.py": "tests/storage/gateways/analytics/test_service.py",
    "roost/storage/gateways/*.py": "tests/contract/test_storage_gateways.py",
    "roost/migrations/versions/0008_storage.py": "tests/migrations/test_match.py",
    "roost/migrations/__init__.py": "tests/migrations/test_upgrade.py",
}


def mirror(module: Module) -> str:
    """`roost/core/seal.py` -> `tests/core/test_seal.py`; a contract -> the conformance suite of its kind."""
    path = PurePosixPath(module.path)
    if path.name == "contract.py":
        return f"tests/conformance/test_{path.parent.name}.py"
    name = path.parent.name if path.name == "__init__.py" else path.stem
    return str(PurePosixPath("tests", *path.parent.parts[1:], f"test_{name}.py"))


def test_every_module_has_its_test() -> None:
    missing = [
        f"{module.path} ({module.lines} lines): no {' and no '.join(_places(module))}"
        for module in modules()
        if module.lines >= LONG_ENOUGH and not any(any(ROOT.glob(place)) for place in _places(module))
    ]
    assert not missing, "write the test, or name the one that covers it in TESTED_ELSEWHERE:\n" + "\n".join(missing)


def test_the_exceptions_are_needed() -> None:
    idle = [
        pattern
        for pattern in TESTED_ELSEWHERE
        if all((ROOT / mirror(module)).is_file() for module in modules() if module.within(pattern))
    ]
    assert not idle, f"TESTED_ELSEWHERE names {', '.join(idle)} without need: take it out"


def _places(module: Module) -> list[str]:
    return [mirror(module), *(place for pattern, place in TESTED_ELSEWHERE.items() if module.within(pattern))]
