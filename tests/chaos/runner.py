"""Kill a server, an agent's container or both at random points of operations, and check what is left each time."""

import asyncio
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import httpx2 as httpx

from tests.chaos.actions import Action, Fork, Push, Reset, Sync
from tests.chaos.address_actions import Replace, Verify
from tests.chaos.audit import check_content, check_history, check_library, check_remains, check_repositories
from tests.chaos.deployment import Deployment
from tests.chaos.event_audit import check_events
from tests.chaos.library_actions import Attach, FromTemplate, Install, Publish, Register
from tests.chaos.session_actions import SignIn, SignOut
from tests.chaos.storage_actions import Pay, Price, Vectorize
from tests.chaos.stream_actions import Chat, Command, Follow, Terminal
from tests.storage.crash import forked

ACTIONS: Mapping[str, type[Action]] = {
    "sync": Sync,
    "reset": Reset,
    "push": Push,
    "fork": Fork,
    "register": Register,
    "attach": Attach,
    "install": Install,
    "publish": Publish,
    "template": FromTemplate,
    "replace": Replace,
    "verify": Verify,
    "price": Price,
    "pay": Pay,
    "vectorize": Vectorize,
    "follow": Follow,
    "sign_in": SignIn,
    "sign_out": SignOut,
    "chat": Chat,
    "command": Command,
    "terminal": Terminal,
}
_AUDIT_EVERY = 10
_STAGED_SECONDS = 0.06
"""From the first staged change to the kill, at most: writing, syncing and moving take about as long."""
_LATEST = 1.1
"""The kill comes until this multiple of an operation's usual duration."""


def run_chaos(deployment: Deployment, points: int, seed: int, names: Sequence[str]) -> Counter[str]:
    """Interrupt operations of the given names in turn; return how often which process was killed before their end.

    At the end, all processes of the deployment are gone.
    """
    chance = random.Random(seed)
    try:
        actions = {name: ACTIONS[name](deployment, chance) for name in names}
        for action in actions.values():
            _run_whole(deployment, action)
        done = Counter[str]()
        for point in range(points):
            name = names[point % len(names)]
            victim = chance.choice([*actions[name].victims, *deployment.other_victims()])
            print(f"{point}: {victim} killed during {name}", file=sys.stderr, flush=True)
            done[f"{name} {victim}"] += _interrupt(deployment, actions[name], victim, chance)
            if point % _AUDIT_EVERY == _AUDIT_EVERY - 1:
                _audit(deployment)
        for action in actions.values():
            _run_whole(deployment, action)
        deployment.get("DELETE", f"/agents/{deployment.agent_id}")
        _audit(deployment)
    finally:
        deployment.end()
    return done


def _run_whole(deployment: Deployment, action: Action) -> None:
    """Run an operation to its end."""
    action.prepare()
    _run_quietly(action)
    assert action.seconds, f"{type(action).__name__} failed"
    deployment.settle()
    action.check()


def _interrupt(deployment: Deployment, action: Action, victim: str, chance: random.Random) -> bool:
    """Kill during an operation, wait until everything is at rest, and check; return whether it was under way."""
    action.prepare()
    running = threading.Thread(target=_run_quietly, args=(action,))
    running.start()
    if action.stages and chance.random() < 0.5:
        paths = list(deployment.workspaces().values())
        while running.is_alive() and not any((path / ".roost-staging").exists() for path in paths):
            time.sleep(0.0005)
        time.sleep(chance.uniform(0, _STAGED_SECONDS))  # a random time for the kill
    else:
        running.join(chance.uniform(0, action.seconds * _LATEST))
    is_under_way = running.is_alive()
    if kill := deployment.other_victims().get(victim):
        kill()
    if victim in {"server", "both"}:
        deployment.kill_server()
    if victim in {"container", "both"}:
        for agent_id in action.agents():
            deployment.kill_container(agent_id)
    running.join()
    deployment.start()
    if kill:  # the start of a server or container leaves nothing for later
        action.await_recovery()
    deployment.settle()
    check_remains(deployment)
    check_library(deployment)
    check_events(deployment)
    action.check()
    check_history(deployment, deployment.agent_id)
    return is_under_way


def _run_quietly(action: Action) -> None:
    begun = time.monotonic()
    action.is_done = False
    with suppress(httpx.HTTPError):
        if action.run():
            action.is_done = True
            action.seconds = time.monotonic() - begun  # depends on what else the machine does


def _audit(deployment: Deployment) -> None:
    deployment.settle()
    check_remains(deployment)
    check_library(deployment)
    check_events(deployment)
    check_repositories(deployment)
    child = forked(lambda: asyncio.run(check_content(deployment.database, deployment.data / "blobs")))
    assert os.waitpid(child, 0)[1] == 0, "see the error above"
