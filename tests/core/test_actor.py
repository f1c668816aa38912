"""The actor of a task: inherited by tasks and by transactions, and never by background loops."""

import asyncio

from roost.core.actor import SERVER, Actor, ActorKind, acting_as, current_actor
from roost.core.db import Database
from roost.core.periodic import PeriodicTask

ADA = Actor(ActorKind.KEY, "t", "k", "ada")


async def _get() -> Actor:
    return current_actor.get()


async def test_tasks_and_transactions_have_the_actor_of_their_creator(database: Database) -> None:
    assert await database.write(lambda _: current_actor.get()) == SERVER
    with acting_as(ADA):
        task = asyncio.create_task(_get())
        assert await database.write(lambda _: current_actor.get()) == ADA
    assert await task == ADA
    assert await _get() == SERVER
    assert await database.write(lambda _: current_actor.get()) == SERVER


async def test_a_background_loop_belongs_to_nobody() -> None:
    found = asyncio.Queue[Actor]()

    async def run() -> None:
        await found.put(current_actor.get())

    loop = PeriodicTask("test", run, 60)
    with acting_as(ADA):
        loop.start()
    assert await asyncio.wait_for(found.get(), 10) == SERVER
    await loop.stop()
