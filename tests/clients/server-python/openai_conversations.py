"""Conversations and their items, background responses, and cancelling."""

from __future__ import annotations

import time
from typing import Any

import openai
from harness import World
from openai_chains import client_of

TIDE = "The tide turns at ten."


def conversations(world: World) -> None:
    client = client_of(world)
    seed = {"type": "message", "role": "user", "content": TIDE}
    noted = {"type": "message", "role": "assistant", "content": "Noted."}
    made = client.conversations.create(items=[seed, noted], metadata={"topic": "tides"})
    world.equal("metadata is kept", made.metadata, {"topic": "tides"})
    turn = client.responses.create(
        model=world.model, input="What did I say first?", conversation=made.id
    )
    world.equal("a turn knows the items", turn.output_text, f'You first said: "{TIDE}"')
    named = turn.conversation.id if turn.conversation else None
    world.equal("the response names its conversation", named, made.id)
    listed = list(client.conversations.items.list(made.id, order="asc", limit=2))
    world.equal("a turn adds two items", len(listed), 4)
    world.equal("the answer is listed", listed[-1].id, turn.output[-1].id)
    more = client.conversations.items.create(
        made.id, items=[{"role": "user", "content": "more", "type": "message"}]
    )
    added = more.data[0]
    read = client.conversations.items.retrieve(added.id, conversation_id=made.id)
    world.equal("an item is read by its id", read.id, added.id)
    left = client.conversations.items.delete(added.id, conversation_id=made.id)
    world.equal("deleting an item answers with the conversation", left.id, made.id)
    world.equal(
        "it is not listed", len(list(client.conversations.items.list(made.id))), 4
    )
    changed = client.conversations.update(made.id, metadata={"topic": "buoys"})
    world.equal("metadata is replaced", changed.metadata, {"topic": "buoys"})
    gone = client.conversations.delete(made.id)
    world.equal("it is deleted", (gone.id, gone.deleted), (made.id, True))
    world.raises(
        "a deleted conversation",
        openai.NotFoundError,
        lambda: client.conversations.retrieve(made.id),
    )
    still = client.responses.retrieve(turn.id)
    world.equal("its response is still there", still.output_text, turn.output_text)


def ended(client: Any, response: Any) -> Any:
    while response.status in ("queued", "in_progress"):
        time.sleep(0.02)
        response = client.responses.retrieve(response.id)
    return response


def background(world: World) -> None:
    client = client_of(world)
    begun = client.responses.create(model=world.model, input=TIDE, background=True)
    world.check("it is answered at once", begun.status in ("queued", "completed"), begun)
    done = ended(client, begun)
    world.equal("it is made", (done.id, done.status), (begun.id, "completed"))
    world.equal("its answer is read", done.output_text, f'You said: "{TIDE}"')
    late = client.responses.cancel(begun.id)
    world.equal("what has ended stays", (late.id, late.status), (begun.id, "completed"))


SCENARIOS = [conversations, background]
