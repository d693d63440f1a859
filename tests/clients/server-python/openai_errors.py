"""What an SDK makes of misuse and of vendors that fail: class, code and parameter."""

from __future__ import annotations

from typing import Any

import openai
from harness import World
from openai_chains import client_of

NOBODY = "resp_00000000000000000000000000000000"


def misuse(world: World) -> None:
    client = client_of(world)
    create = client.responses.create
    wrong: list[tuple[str, dict[str, Any], Any, int, str | None, str | None, str]] = [
        (
            "no model",
            {"input": "x"},
            openai.BadRequestError,
            400,
            "missing_required_parameter",
            "model",
            "model",
        ),
        (
            "an unknown model",
            {"model": "nobody/nothing", "input": "x"},
            openai.NotFoundError,
            404,
            "model_not_found",
            "model",
            "nobody/nothing",
        ),
        (
            "an unknown response to continue",
            {"model": world.model, "input": "x", "previous_response_id": NOBODY},
            openai.BadRequestError,
            400,
            "previous_response_not_found",
            "previous_response_id",
            f"Previous response with id '{NOBODY}' not found.",
        ),
        (
            "something that is no id",
            {"model": world.model, "input": "x", "previous_response_id": "resp_nope"},
            openai.BadRequestError,
            400,
            "previous_response_not_found",
            "previous_response_id",
            "resp_nope",
        ),
        (
            "a response and a conversation to continue",
            {
                "model": world.model,
                "input": "x",
                "previous_response_id": NOBODY,
                "conversation": "conv_1",
            },
            openai.BadRequestError,
            400,
            "mutually_exclusive_parameters",
            "conversation",
            "previous_response_id",
        ),
        (
            "a result without a call",
            {
                "model": world.model,
                "input": [{"type": "function_call_output", "call_id": "call_zzz", "output": "1"}],
            },
            openai.BadRequestError,
            400,
            None,
            "input",
            "No tool call found for function call output with call_id call_zzz.",
        ),
        (
            "a reference to nothing",
            {"model": world.model, "input": [{"type": "item_reference", "id": "msg_nothing"}]},
            openai.BadRequestError,
            400,
            "item_not_found",
            "input",
            "msg_nothing",
        ),
        (
            "a foreign tool server",
            {
                "model": world.model,
                "input": "x",
                "tools": [
                    {
                        "type": "mcp",
                        "server_label": "orders",
                        "server_url": "http://127.0.0.1:1/mcp",
                        "require_approval": "never",
                    }
                ],
            },
            openai.BadRequestError,
            400,
            "unsupported_value",
            "tools[0].server_url",
            "server_label",
        ),
    ]
    for what, body, kind, status, code, param, words in wrong:
        world.refused(
            what,
            kind,
            lambda body=body: create(**body),
            status=status,
            code=code,
            param=param,
            words=words,
        )
    for what, body, param in (
        ("a temperature that is no number", {"temperature": "hot"}, "temperature"),
        ("too much metadata", {"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ("input that is neither text nor list", {"input": 7}, "input"),
    ):
        error = world.raises(
            what,
            openai.BadRequestError,
            lambda body=body: create(**{"model": world.model, "input": "x", **body}),
        )
        world.equal(f"{what}: param", (error.status_code, error.param), (400, param))


def absent(world: World) -> None:
    client = client_of(world)
    for what, work in (
        ("read", lambda: client.responses.retrieve(NOBODY)),
        ("read as a stream", lambda: list(client.responses.retrieve(NOBODY, stream=True))),
        ("deleted", lambda: client.responses.delete(NOBODY)),
        ("listed", lambda: client.responses.input_items.list(NOBODY)),
    ):
        world.refused(
            f"an absent response cannot be {what}",
            openai.NotFoundError,
            work,
            status=404,
            code=None,
            words=f"Response with id '{NOBODY}' not found.",
        )
    made = client.responses.create(model=world.model, input="x")
    for limit in (0, 101):
        error = world.raises(
            f"a page of {limit}",
            openai.BadRequestError,
            lambda limit=limit: client.responses.input_items.list(made.id, limit=limit),
        )
        world.equal(f"a page of {limit}: param", error.param, "limit")


def not_served(world: World) -> None:
    """A route that is not served says so by name, and no SDK asks again."""
    client = client_of(world)
    for what, work in (
        ("embeddings", lambda: client.embeddings.create(model=world.model, input="x")),
        ("images", lambda: client.images.generate(model=world.model, prompt="x")),
    ):
        error = world.raises(f"{what} are not served", openai.NotFoundError, work)
        seen = (error.status_code, error.code)
        world.equal(f"{what} say so", seen, (404, "route_not_served"))
        asked = error.request.headers.get("x-stainless-retry-count")
        world.equal(f"{what} are asked for once", asked, "0")


def vendors(world: World) -> None:
    """Upstream errors keep their meaning; the run is kept as failed."""
    if world.demo:
        return
    client = client_of(world)
    for fault, kind, status, code in (
        ("unauthorised", openai.InternalServerError, 502, "upstream_auth"),
        ("invalid_request", openai.BadRequestError, 400, None),
        ("rate_limited", openai.RateLimitError, 429, None),
        ("server_error", openai.InternalServerError, 502, None),
    ):
        world.control.ask(f"fault {fault} 100")
        try:
            error = world.raises(
                f"{fault} is told",
                kind,
                lambda: client.responses.create(model=world.model, input=f"about {fault}"),
            )
        finally:
            world.control.ask("heal")
        world.equal(f"{fault} has its status", error.status_code, status)
        if code:
            world.equal(f"{fault} has its code", error.code, code)
        retried = error.request.headers.get("x-stainless-retry-count")
        world.equal(f"{fault} is not sent again", retried, "0")
        id = error.response.headers.get("x-throughline-response-id")
        world.need(f"{fault} names its response", id)
        failed = client.responses.retrieve(id)
        seen = (failed.status, failed.error is not None)
        world.equal(f"{fault} is kept as failed", seen, ("failed", True))
        # A success, too: many failures in a row would have the vendor left alone for a while.
        made = client.responses.create(model=world.model, input="and now?")
        world.equal(f"{fault} is over", made.output_text, 'You said: "and now?"')


def failed_streams(world: World) -> None:
    if world.demo:
        return
    client = client_of(world)
    told: list[str] = []
    ids: list[str] = []

    def read() -> None:
        with client.responses.create(model=world.model, input="x", stream=True) as stream:
            for event in stream:
                told.append(event.type)
                if event.type == "response.created":
                    ids.append(event.response.id)

    world.control.ask("fault invalid_request 100")
    try:
        world.raises("a stream that fails says so", openai.APIError, read)
    finally:
        world.control.ask("heal")
    wanted = ["response.created", "response.in_progress"]
    world.equal("what had begun was told", told, wanted)
    failed = client.responses.retrieve(ids[0])
    world.equal("it is kept as failed", failed.status, "failed")
    with client.responses.create(
        model=world.model, input="go on", previous_response_id=ids[0], stream=True
    ) as stream:
        last = list(stream)[-1]
    # Some vendors hear what was said before in the same message.
    text = last.response.output_text
    world.check("and can be continued", text.endswith('go on"'), text)


SCENARIOS = [misuse, absent, not_served, vendors, failed_streams]
