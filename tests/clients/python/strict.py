"""Validators that hold JSON to the letter of an SDK's own types.

The SDKs build their objects without looking at what is missing, and pydantic leaves `Iterable`
fields unread until somebody iterates. Here the schema that pydantic derives from a type is
changed before the validator is built:

- iterables are lists, so that every element is looked at;
- keys that no type declares can be refused;
- an open union, which keeps what it does not know, is the union of what it knows;
- a union whose members name themselves in a key is read by that key, which is quicker and gives
  one reason instead of one for each member.

Nothing is made more lenient than the SDK's type, but for what the caller names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import SchemaValidator, core_schema

# Parts of a schema that are not about reading.
SKIPPED = {"metadata", "serialization", "cls", "function", "config", "expected", "default"}

# Parts of a schema that are tables by name, where a name can be any word.
TABLES = {"fields", "choices"}

# Functions of the SDKs that only log, but would turn JSON into Python values before it is read:
# bytes, for one, are then no longer base64.
HARMLESS = {"_check_field_type_mismatches"}

# Keys by which the members of a union can name themselves.
TAGS = ("type", "role", "event_type", "object")


class Typed(dict):
    """What a TypedDict accepted, with the type that did."""

    def __init__(self, value: dict, declared: type) -> None:
        super().__init__(value)
        self.declared = declared


def schema_of(declared: Any) -> dict:
    """The schema that pydantic derives from a type."""
    # Some types take open files, which never stand in JSON; only a list can be told so.
    adapter = TypeAdapter(list[declared], config=ConfigDict(arbitrary_types_allowed=True))
    adapter.rebuild(force=True)
    schema = plain(adapter.core_schema)
    if schema["type"] == "definitions":
        return {**schema, "schema": schema["schema"]["items_schema"]}
    return schema["items_schema"]


def plain(node: Any) -> Any:
    """The schema as dictionaries that can be changed without changing the SDK's."""
    if isinstance(node, Mapping):
        return {
            key: part if key in SKIPPED else over(part, key, plain) for key, part in node.items()
        }
    if isinstance(node, list):
        return [plain(child) for child in node]
    if isinstance(node, tuple):
        return tuple(plain(child) for child in node)
    return node


def over(part: Any, key: str, change: Callable[[Any], Any]) -> Any:
    """A part of a schema with a change made to the schemas in it."""
    if key in TABLES and isinstance(part, Mapping):
        return {name: change(schema) for name, schema in part.items()}
    return change(part)


class Tightener:
    """Changes one schema.

    `unknown` says what becomes of keys that no type declares: "forbid" or "ignore". `required`
    names keys that the vendor wants although its type does not say so, by the name of the type;
    `optional` names keys that need not be there although it does. `also` has schemas that a key
    accepts besides its own, by type and key. `keys` names strings that a type may have besides its
    keys. `checks` are functions over what a type accepted. `mark` keeps the types of dictionaries,
    for the self-test. `scope` makes the names of shared definitions differ from those of other
    schemas in the same validator.
    """

    def __init__(
        self,
        unknown: str,
        required: Mapping[str, set[str]],
        optional: Mapping[str, set[str]],
        also: Mapping[tuple[str, str], dict],
        keys: Mapping[str, set[str]],
        checks: Mapping[str, Callable[[Any], Any]],
        mark: bool,
        scope: str,
    ) -> None:
        self.unknown = unknown
        self.required = required
        self.optional = optional
        self.also = also
        self.keys = keys
        self.checks = checks
        self.mark = mark
        self.scope = scope
        self.definitions: dict[str, dict] = {}

    def tighten(self, schema: dict) -> dict:
        for node in nodes(schema):
            if isinstance(node.get("ref"), str) and node.get("type") != "definition-ref":
                self.definitions[node["ref"]] = node
        return self.visit(schema)

    def visit(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.visit(child) for child in node]
        if isinstance(node, tuple):
            return tuple(self.visit(child) for child in node)
        if not isinstance(node, dict):
            return node
        if node.get("type") == "definitions":
            definitions = [self.definition(each) for each in node["definitions"]]
            return core_schema.definitions_schema(self.visit(node["schema"]), definitions)
        if node.get("type") == "definition-ref":
            return core_schema.definition_reference_schema(self.scope + node["schema_ref"])
        # The unions look at their members as they were declared, so they go first.
        if node.get("type") == "function-before":
            if is_open_union(node):
                return self.visit(self.known_members(node))
            if name_of(node) in HARMLESS:
                return self.visit(node["schema"])
        if node.get("type") == "union":
            tagged = self.by_tag(node)
            if tagged is not None:
                return self.children(tagged)
        node = self.children(node)
        kind = node.get("type")
        if kind == "generator":
            return core_schema.list_schema(node["items_schema"])
        if kind == "typed-dict":
            return self.typed_dict(node)
        if kind == "model":
            return self.model(node)
        return node

    def children(self, node: dict) -> dict:
        # Only definitions need their name, and no name may stand twice.
        return {
            key: part if key in SKIPPED else over(part, key, self.visit)
            for key, part in node.items()
            if key != "ref"
        }

    def definition(self, node: dict) -> dict:
        return {**self.visit(node), "ref": self.scope + node["ref"]}

    def typed_dict(self, node: dict) -> dict:
        declared = node.get("cls")
        name = getattr(declared, "__name__", "")
        for key in self.optional.get(name, ()):
            node["fields"][key]["required"] = False
        for key in self.required.get(name, ()):
            node["fields"][key]["required"] = True
        for key in self.keys.get(name, ()):
            string = core_schema.typed_dict_field(core_schema.str_schema(), required=False)
            node["fields"].setdefault(key, string)
        self.widen(name, node["fields"])
        config = dict(node.get("config") or {})
        config.pop("extra_fields_behavior", None)
        node["config"] = config
        # Neither a type without keys nor one that types its unknown keys has a closed list.
        is_open = not node["fields"] or "extras_schema" in node
        node["extra_behavior"] = "allow" if is_open else self.unknown
        if not self.mark:
            return node
        return core_schema.no_info_after_validator_function(
            partial(Typed, declared=declared), node
        )

    def model(self, node: dict) -> dict:
        fields = node["schema"]
        while fields["type"] != "model-fields":
            fields = fields["schema"]
        name = node["cls"].__name__
        # A constructor of its own would read with the validator of the class, not with this one.
        node["custom_init"] = False
        for key in self.optional.get(name, ()):
            field = fields["fields"][key]
            field["schema"] = core_schema.with_default_schema(field["schema"], default=None)
        self.widen(name, fields["fields"])
        for key in self.required.get(name, ()):
            field = fields["fields"][key]
            while field["schema"]["type"] in ("default", "nullable"):
                field["schema"] = field["schema"]["schema"]
        config = dict(node.get("config") or {})
        config.pop("extra_fields_behavior", None)
        node["config"] = config
        # Neither a model without keys nor one that types its unknown keys has a closed list.
        is_open = not fields["fields"] or "extras_schema" in fields
        fields["extra_behavior"] = "allow" if is_open else self.unknown
        if name in self.checks:
            node = core_schema.no_info_after_validator_function(self.checks[name], node)
        return node

    def widen(self, name: str, fields: dict) -> None:
        for key, field in fields.items():
            if (name, key) in self.also:
                other = self.visit(plain(self.also[name, key]))
                holder = field
                while holder["schema"]["type"] in ("default", "nullable"):
                    holder = holder["schema"]
                holder["schema"] = core_schema.union_schema([holder["schema"], other])

    def known_members(self, node: dict) -> dict:
        """An open union without its member for anything else."""
        settings = node["function"]["function"].keywords
        tag, unknown = settings["disc_key"], settings["unknown_cls"]
        choices = {}
        for choice in node["schema"]["choices"]:
            target = self.resolve(choice)
            if target.get("cls") is unknown:
                continue
            for value in tags_of(target, tag):
                choices[value] = choice
        missing = set(settings["variants"]) - set(choices)
        if missing:
            raise ValueError(f"no member for {sorted(missing)}")
        return core_schema.tagged_union_schema(choices, tag)

    def by_tag(self, node: dict) -> dict | None:
        """The union read by the key that tells its members apart, if there is one."""
        choices = [choice[0] if isinstance(choice, tuple) else choice for choice in node["choices"]]
        if len(choices) < 3:
            return None
        for tag in TAGS:
            groups: dict[str, list[dict]] = {}
            untagged = []
            for choice in choices:
                target = self.resolve(choice)
                values = tags_of(target, tag)
                for value in values:
                    groups.setdefault(value, []).append(choice)
                if not values or not is_required(target, tag):
                    untagged.append(choice)
            if len(groups) < 3 or len(untagged) * 2 > len(choices):
                continue
            members = {
                value: group[0] if len(group) == 1 else core_schema.union_schema(group)
                for value, group in groups.items()
            }
            tagged = core_schema.tagged_union_schema(members, tag)
            if not untagged:
                return tagged
            return core_schema.union_schema([tagged, *untagged], mode="left_to_right")
        return None

    def resolve(self, node: dict) -> dict:
        while True:
            if node["type"] == "definition-ref":
                node = self.definitions[node["schema_ref"]]
            elif node["type"] in ("function-after", "function-before", "definitions"):
                node = node["schema"]
            else:
                return node


def nodes(schema: Any) -> Iterator[dict]:
    if isinstance(schema, dict):
        yield schema
        for key, part in schema.items():
            if key in TABLES and isinstance(part, dict):
                yield from nodes(list(part.values()))
            elif key not in SKIPPED:
                yield from nodes(part)
    elif isinstance(schema, (list, tuple)):
        for child in schema:
            yield from nodes(child)


def name_of(node: dict) -> str:
    """The name of the function in a schema, also of one with its first arguments given."""
    function = node["function"]["function"]
    return getattr(getattr(function, "func", function), "__name__", "")


def is_open_union(node: dict) -> bool:
    return name_of(node) == "parse_open_union"


def field_of(target: dict, name: str) -> dict | None:
    if target["type"] == "model":
        target = target["schema"]
        while target["type"] != "model-fields":
            target = target["schema"]
    elif target["type"] != "typed-dict":
        return None
    return target["fields"].get(name)


def tags_of(target: dict, name: str) -> list[str]:
    """The values that a member of a union allows for a key, if they are listed."""
    field = field_of(target, name)
    node = field and field["schema"]
    while node and node["type"] in ("default", "nullable", "function-after"):
        node = node["schema"]
    if not node or node["type"] != "literal":
        return []
    return [value for value in node["expected"] if isinstance(value, str)]


def is_required(target: dict, name: str) -> bool:
    field = field_of(target, name)
    if field is None:
        return False
    if target["type"] == "typed-dict":
        return bool(field.get("required"))
    return field["schema"]["type"] not in ("default", "nullable")


def validator(schemas: Mapping[str, dict], **settings: Any) -> SchemaValidator:
    """A validator of lines `{"kind": …, "value": …}`, with a schema for each kind.

    A line may also have a name.
    """
    lines = {}
    for kind, schema in schemas.items():
        value = Tightener(scope=kind + ":", **settings).tighten(plain(schema))
        fields = {
            "kind": core_schema.typed_dict_field(core_schema.literal_schema([kind])),
            "name": core_schema.typed_dict_field(core_schema.str_schema(), required=False),
            "value": core_schema.typed_dict_field(value),
        }
        lines[kind] = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
    schema = core_schema.tagged_union_schema(lines, "kind")
    # A class that has a validator already would be read with that one, whatever the schema says.
    classes = {node["cls"] for node in nodes(schema) if node.get("type") == "model"}
    complete = {each for each in classes if each.__pydantic_complete__}
    for each in complete:
        each.__pydantic_complete__ = False
    try:
        return SchemaValidator(schema, _use_prebuilt=False)
    finally:
        for each in complete:
            each.__pydantic_complete__ = True
