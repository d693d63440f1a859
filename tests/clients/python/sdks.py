"""Which types of an SDK stand for what we write, for each wire format.

A function for each format imports its SDK and gives the types by kind of sample:

    messages   what `encode_messages` writes: the input side of the SDK
    request    what `encode_request` writes
    response   what `encode_response` writes
    stream     the events that `encode_stream` writes
    rendered   a request with a rendered history

The settings beside them are the few places where the SDK's types and the wire differ. In a rendered
history the vendor's own items go back as they came, so it has a few such places more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Literal, Union

from pydantic import BaseModel
from typing_extensions import Required, TypedDict


@dataclass
class Sdk:
    """The types of one format, and where the wire is not what they say."""

    kinds: dict[str, Any]
    # Keys that the vendor wants although its type does not say so, by the name of the type.
    required: dict[str, set[str]] = field(default_factory=dict)
    # Keys that only the caller can name, by the name of the type: a request of ours has no word
    # for the model, nor for a limit of tokens.
    optional: dict[str, set[str]] = field(default_factory=dict)
    # What a key accepts besides what its type says, by type and key.
    also: dict[tuple[str, str], Any] = field(default_factory=dict)
    # Strings that a type may have besides the keys that it declares.
    keys: dict[str, set[str]] = field(default_factory=dict)
    # Types that stand beside a looser one in the SDK, so that none of their keys is required.
    loose: set[str] = field(default_factory=set)
    # What else holds for the values of a type.
    checks: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    # The type of a rendered request, where it is not that of `request`.
    rendered: Any = None
    # Keys that may be missing from a rendered request, and strings that it may have besides.
    rendered_optional: dict[str, set[str]] = field(default_factory=dict)
    rendered_keys: dict[str, set[str]] = field(default_factory=dict)
    # Keys and types of items in the transcripts that no SDK can know: they were made up, to show
    # that what is newer than we are goes back to its vendor.
    planted: set[str] = field(default_factory=set)

    def for_rendered(self) -> Sdk:
        """The same for rendered requests, which name everything that a request must name."""
        return replace(
            self,
            kinds={"rendered": self.rendered or self.kinds["request"]},
            optional=self.rendered_optional,
            keys=self.rendered_keys,
        )

    def adapter(self) -> str:
        """The name of what reads a request: a model by itself, a typed dictionary by an adapter."""
        [declared] = self.kinds.values()
        name = f"{declared.__module__}.{declared.__qualname__}"
        return name if issubclass(declared, BaseModel) else f"pydantic.TypeAdapter({name})"


def openai_responses() -> Sdk:
    from openai.types import responses
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    # The service takes audio in messages, and the SDK has the type of it, but its list of parts
    # leaves that out. Tool outputs are another list, in which audio has no place.
    part = Union[
        responses.ResponseInputTextParam,
        responses.ResponseInputImageParam,
        responses.ResponseInputFileParam,
        responses.ResponseInputAudioParam,
    ]

    return Sdk(
        kinds={
            "messages": responses.ResponseInputParam,
            "request": ResponseCreateParamsNonStreaming,
            "response": responses.Response,
            "stream": list[responses.ResponseStreamEvent],
        },
        also={
            ("EasyInputMessageParam", "content"): list[part],
            ("Message", "content"): list[part],
        },
        # The service takes a message of the model without them, as it must: an id that is not its
        # own may not be sent.
        rendered_optional={"ResponseOutputMessageParam": {"id", "status"}},
        planted={"x_trace", "sea_shanty"},
    )


def openai_chat() -> Sdk:
    from openai.types import chat
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from openai.types.shared import ErrorObject

    # An error in a stream stands where a chunk would; the SDK looks for it before it reads chunks.
    error = TypedDict("StreamError", {"error": ErrorObject})
    # The message of a whole answer has calls of custom tools; the type of the deltas that add up to
    # it leaves them out.
    custom = TypedDict("CustomFragment", {"name": str, "input": str}, total=False)
    call = TypedDict(
        "CustomCallFragment",
        {
            "index": Required[int],
            "id": str,
            "type": Literal["custom"],
            "custom": Required[custom],
        },
        total=False,
    )
    return Sdk(
        kinds={
            "messages": list[chat.ChatCompletionMessageParam],
            "request": CompletionCreateParamsNonStreaming,
            "response": chat.ChatCompletion,
            "stream": list[Union[chat.ChatCompletionChunk, error]],
        },
        optional={"CompletionCreateParamsNonStreaming": {"model"}},
        also={("ChoiceDelta", "tool_calls"): list[call]},
    )


def anthropic() -> Sdk:
    from anthropic import types
    from anthropic.types.beta import message_create_params as beta
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    # Not the beta types: nothing that we make for another vendor's content is beta. An error in a
    # stream is an event on the wire; the SDK takes it out before it looks at the types of events.
    event = Union[types.RawMessageStreamEvent, types.ErrorResponse]
    return Sdk(
        kinds={
            "messages": list[types.MessageParam],
            "request": MessageCreateParamsNonStreaming,
            "response": types.Message,
            "stream": list[event],
        },
        # The first stands beside "any object", the second beside the type of what a model cites.
        loose={"InputSchemaTyped", "BetaCitationWebSearchResultLocationParam"},
        optional={"MessageCreateParamsNonStreaming": {"model", "max_tokens"}},
        # What the vendor said itself may be of a beta, and goes back to it.
        rendered=beta.MessageCreateParamsNonStreaming,
    )


def gemini() -> Sdk:
    from google.genai import types

    # The SDK takes a request apart into arguments and has no type for the body.
    body = TypedDict(
        "GenerateContentBody",
        {
            "contents": Required[list[types.Content]],
            "systemInstruction": types.Content,
            "tools": list[types.Tool],
            "toolConfig": types.ToolConfig,
            "safetySettings": list[types.SafetySetting],
            "generationConfig": types.GenerationConfig,
            "cachedContent": str,
            "labels": dict[str, str],
            "serviceTier": types.ServiceTier,
        },
        total=False,
    )

    # An error in a stream stands where a chunk would; the SDK looks for it before it reads chunks,
    # and has no type for it.
    status = TypedDict(
        "StreamStatus",
        {
            "code": Required[int],
            "message": Required[str],
            "status": Required[str],
            "details": list[dict[str, Any]],
        },
        total=False,
    )
    error = TypedDict("StreamError", {"error": status})

    said = (
        "text",
        "inline_data",
        "file_data",
        "function_call",
        "function_response",
        "executable_code",
        "code_execution_result",
        "tool_call",
        "tool_response",
    )

    def one_thing_said(part: Any) -> Any:
        found = [name for name in said if getattr(part, name) is not None]
        if len(found) != 1:
            raise ValueError(f"a part says one thing, not {found or 'nothing'}")
        return part

    def anything_said(response: Any) -> Any:
        if not response.model_fields_set:
            raise ValueError("a response says something")
        return response

    return Sdk(
        kinds={
            "messages": list[types.Content],
            "request": body,
            "response": types.GenerateContentResponse,
            "stream": list[Union[types.GenerateContentResponse, error]],
        },
        # In the SDK every key is optional; these are the ones that the service itself wants.
        required={
            "Content": {"parts"},
            "Blob": {"data", "mime_type"},
            "FileData": {"file_uri"},
            "FunctionCall": {"name"},
            "FunctionResponse": {"name", "response"},
            "ExecutableCode": {"code", "language"},
            "CodeExecutionResult": {"outcome"},
            "FunctionDeclaration": {"name"},
        },
        checks={"Part": one_thing_said, "GenerateContentResponse": anything_said},
    )


def gemini_interactions() -> Sdk:
    from google.genai import interactions

    return Sdk(
        kinds={
            "messages": list[interactions.StepParam],
            "request": interactions.CreateModelInteractionParam,
            "response": interactions.Interaction,
            "stream": list[interactions.InteractionSSEEvent],
        },
        optional={"CreateModelInteractionParam": {"model"}},
        # The SDK takes any name of a model, though its list of known ones is closed when strict.
        also={("Interaction", "model"): str, ("CreateModelInteractionParam", "model"): str},
    )


def foundry() -> Sdk:
    from azure.ai.agentserver.responses.models._generated import types

    return Sdk(
        kinds={
            "messages": list[types.Item],
            "request": types.CreateResponse,
            "response": types.ResponseObject,
            "stream": list[types.ResponseStreamEvent],
        },
        # Items of the service go back with their ids, as with OpenAI; the types of what comes in
        # leave these out, those of what goes out have them.
        rendered_keys={"ItemMessage": {"id", "status"}, "ItemFunctionToolCall": {"id"}},
    )


SDKS: dict[str, Callable[[], Sdk]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "gemini-interactions": gemini_interactions,
    "foundry": foundry,
}
