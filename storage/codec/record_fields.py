"""Structs, the declarative form of record schemas, and their compilation to codecs.

A ``Struct`` lists the fields of a class in the order of the class's arguments. A ``Field`` has a
kind and a range of versions. In a flexible version a struct ends with tagged fields; unknown tags
go to the class's last argument, ``unknown_tags``. As in Kafka, a tagged field that has its default
value is omitted from bytes and JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from storage.codec import wire
from storage.codec.errors import CodecError
from storage.codec.kinds import Compiled, Kind, bytes_from_json, bytes_to_json, check_json

_UNKNOWN_TAGS_JSON = "unknownTaggedFields"
_NOT_NULL = b"\x01"


@dataclass(frozen=True, slots=True)
class Field:
    """A field: ``attr`` is its name in the class, and in camel case its name in JSON.

    Versions outside ``since`` to ``until`` read ``default`` and write nothing.
    """

    attr: str
    kind: Kind
    since: int = 0
    until: int = 0x7FFF
    tag: int | None = None
    default: Any = None
    nullable: bool = False

    @property
    def json_name(self) -> str:
        """Kafka's name of the field: ``topicId`` for ``topic_id``."""
        head, *tail = self.attr.split("_")
        return head + "".join(word.capitalize() for word in tail)


@dataclass(frozen=True, slots=True)
class Struct:
    """A class and its fields, with tagged fields from version ``flexible_since`` on."""

    cls: Callable[..., Any]
    fields: tuple[Field, ...]
    flexible_since: int = 0

    def compile(
        self, version: int, *, flexible: bool | None = None, nullable: bool = False
    ) -> Compiled:
        """Compile the codec of a version; an outer struct passes its own ``flexible`` flag."""
        is_flexible = version >= self.flexible_since if flexible is None else flexible
        steps = tuple(
            _Step.of(field, index, version, is_flexible)
            for index, field in enumerate(self.fields)
            if field.since <= version <= field.until
        )
        plain = tuple(step for step in steps if step.field.tag is None)
        tagged = tuple(step for step in steps if step.field.tag is not None)
        compiled = Compiled(
            _reader(self, plain, tagged, is_flexible),
            _writer(plain, tagged, is_flexible),
            _to_json(steps, is_flexible),
            _from_json(self, steps, is_flexible),
            sum(step.codec.min_size for step in plain) + is_flexible,
        )
        return _compile_nullable(compiled, b"\xff") if nullable else compiled


@dataclass(frozen=True, slots=True)
class _Step:
    """A field present in a version: the index of its constructor argument, and its codec."""

    field: Field
    index: int
    codec: Compiled
    get: Callable[[Any], Any]

    @classmethod
    def of(cls, field: Field, index: int, version: int, flexible: bool) -> _Step:
        if field.tag is not None and field.nullable and isinstance(field.kind, Struct):
            codec = _compile_nullable(field.kind.compile(version, flexible=flexible), b"\x00")
        else:
            codec = field.kind.compile(version, flexible=flexible, nullable=field.nullable)
        return cls(field, index, codec, attrgetter(field.attr))


Steps = tuple[_Step, ...]


def _reader(
    schema: Struct, plain: Steps, tagged: Steps, flexible: bool
) -> Callable[[bytes, int], tuple[Any, int]]:
    defaults = [field.default for field in schema.fields] + ([()] if flexible else [])
    reads = tuple((step.index, step.codec.read) for step in plain)
    known = {step.field.tag: step for step in tagged}
    make = schema.cls

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        arguments = defaults.copy()
        for index, read_field in reads:
            arguments[index], pos = read_field(data, pos)
        if flexible:
            if data[pos]:
                pos = read_tagged(data, pos, arguments)
            else:
                pos += 1
        return make(*arguments), pos

    def read_tagged(data: bytes, pos: int, arguments: list[Any]) -> int:
        tags, pos = wire.read_tags(data, pos)
        unknown = []
        for tag, content in tags:
            step = known.get(tag)
            if step is None:
                unknown.append((tag, content))
                continue
            arguments[step.index], end = step.codec.read(content, 0)
            if end != len(content):
                raise CodecError(f"tag {tag} has {len(content) - end} bytes too many")
        arguments[-1] = tuple(unknown)
        return pos

    return read


def _writer(plain: Steps, tagged: Steps, flexible: bool) -> Callable[[bytearray, Any], None]:
    writes = tuple((step.get, step.codec.write) for step in plain)

    def write(out: bytearray, value: Any) -> None:
        for get, write_field in writes:
            write_field(out, get(value))
        if flexible:
            write_tagged(out, value)
        elif getattr(value, "unknown_tags", ()):
            raise CodecError("this version has no tagged fields")

    def write_tagged(out: bytearray, value: Any) -> None:
        tags = list(value.unknown_tags)
        for step in tagged:
            content = step.get(value)
            if content != step.field.default:
                buffer = bytearray()
                step.codec.write(buffer, content)
                tags.append((step.field.tag, bytes(buffer)))
        if tags:
            wire.write_tags(out, sorted(tags))
        else:
            out.append(0)

    return write


def _to_json(steps: Steps, flexible: bool) -> Callable[[Any], dict[str, Any]]:
    def to_json(value: Any) -> dict[str, Any]:
        result = {}
        for step in steps:
            content = step.get(value)
            if step.field.tag is None or content != step.field.default:
                result[step.field.json_name] = step.codec.to_json(content)
        if flexible and value.unknown_tags:
            result[_UNKNOWN_TAGS_JSON] = [
                {"tag": tag, "data": bytes_to_json(data)} for tag, data in value.unknown_tags
            ]
        return result

    return to_json


def _from_json(schema: Struct, steps: Steps, flexible: bool) -> Callable[[Any], Any]:
    defaults = [field.default for field in schema.fields]
    names = {step.field.json_name for step in steps}

    def from_json(value: Any) -> Any:
        check_json(value, dict)
        arguments = defaults.copy()
        for step in steps:
            name = step.field.json_name
            if name in value:
                arguments[step.index] = step.codec.from_json(value[name])
            elif step.field.tag is None:
                raise CodecError(f"{name} is missing")
        unexpected = value.keys() - names - ({_UNKNOWN_TAGS_JSON} if flexible else set())
        if unexpected:
            raise CodecError(f"no such field: {', '.join(sorted(unexpected))}")
        if flexible:
            arguments.append(_tags_from_json(value.get(_UNKNOWN_TAGS_JSON, [])))
        return schema.cls(*arguments)

    return from_json


def _tags_from_json(value: Any) -> wire.TagList:
    tags = []
    for item in check_json(value, list):
        if check_json(item, dict).keys() != {"tag", "data"}:
            raise CodecError(f"{item!r} should have tag and data")
        tags.append((check_json(item["tag"], int), bytes_from_json(item["data"])))
    return tuple(tags)


def _compile_nullable(struct: Compiled, null: bytes) -> Compiled:
    """Compile a nullable struct: a marker byte 1 and the struct, or the byte ``null`` alone.

    As in Kafka's message generator, null is the varint 0 in a tagged field and the int8 -1
    elsewhere.
    """
    (null_byte,) = null

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        marker = data[pos]
        if marker == null_byte:
            return None, pos + 1
        if marker != 1:
            raise CodecError(f"{marker} at byte {pos} marks neither a struct nor null")
        return struct.read(data, pos + 1)

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out += null
        else:
            out += _NOT_NULL
            struct.write(out, value)

    return Compiled(
        read,
        write,
        lambda value: None if value is None else struct.to_json(value),
        lambda value: None if value is None else struct.from_json(value),
        1,
    )
