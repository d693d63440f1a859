"""Webhooks of background responses: the openai package checks and reads what the server posts."""

from __future__ import annotations

from typing import Any

import openai
from harness import World
from openai.types import webhooks
from openai_chains import TIDE, client_of


def posted(world: World, response: str) -> Any:
    """Waits for the event about a response: the request as it came, and the secret."""
    return world.control.order(f"webhook {response}")


def read(world: World, response: str, kind: type[Any]) -> None:
    """The event about a response is of this class, for the SDK."""
    came = posted(world, response)
    client = client_of(world, webhook_secret=came["secret"])
    event = client.webhooks.unwrap(came["body"], came["headers"])
    name = kind.__name__
    world.check(f"{name}: is read as such", isinstance(event, kind), event)
    world.equal(f"{name}: names the response", event.data.id, response)
    world.equal(f"{name}: is an event", event.object, "event")
    world.check(f"{name}: has an id", event.id.startswith("evt_"), event.id)


def webhook_completed(world: World) -> None:
    client = client_of(world)
    begun = client.responses.create(model=world.model, input=TIDE, background=True)
    read(world, begun.id, webhooks.ResponseCompletedWebhookEvent)
    done = client.responses.retrieve(begun.id)
    world.equal("what has been posted has ended", done.status, "completed")


def webhook_forged(world: World) -> None:
    client = client_of(world)
    begun = client.responses.create(model=world.model, input=TIDE, background=True)
    came = posted(world, begun.id)
    body, headers, secret = came["body"], came["headers"], came["secret"]
    other = {**headers, "webhook-id": f"{headers['webhook-id']}0"}
    later = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}
    for what, seen in (
        ("another body", (body.replace("completed", "failed"), headers, secret)),
        ("another id", (body, other, secret)),
        ("another time", (body, later, secret)),
        ("another secret", (body, headers, "whsec_YW5vdGhlcg==")),
    ):
        text, names, key = seen
        world.raises(
            f"{what} is refused",
            openai.InvalidWebhookSignatureError,
            lambda: client.webhooks.unwrap(text, names, secret=key),
        )
    event = client.webhooks.unwrap(body, headers, secret=secret)
    world.equal("what came is not", event.data.id, begun.id)


def webhook_cancelled(world: World) -> None:
    if world.demo:
        return
    client = client_of(world)
    world.control.ask("hold")
    begun = client.responses.create(model=world.model, input=f"hold: {TIDE}", background=True)
    client.responses.cancel(begun.id)
    world.control.ask("release")
    read(world, begun.id, webhooks.ResponseCancelledWebhookEvent)


def webhook_failed(world: World) -> None:
    if world.demo:
        return
    client = client_of(world)
    world.control.ask("fault invalid_request 1")
    try:
        begun = client.responses.create(model=world.model, input=TIDE, background=True)
        read(world, begun.id, webhooks.ResponseFailedWebhookEvent)
    finally:
        world.control.ask("heal")


SCENARIOS = [webhook_completed, webhook_forged, webhook_cancelled, webhook_failed]
