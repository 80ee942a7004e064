"""Type hints as JSON Schemas, and values to and from JSON by their hints.

Leaves calls to ``activities``. What a schema describes is what ``decode`` takes and ``encode`` gives, in Flow's forms: a dataclass or
``TypedDict`` is a record, a union of dataclasses is a tagged union (``{"type": "Name", …}``), ``T | None`` is ``T?``.
"""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import enum
import types
import typing
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar, Union

from .forms import duration_text, parse_bytes, parse_decimal, parse_duration, parse_time, time_text
from .secret import Secret

__all__ = [
    "Approved", "CannotTell", "Happened", "Mismatch", "NotHappened", "SchemaError", "Verdict",
    "decode", "encode", "schema", "to_json",
]  # fmt: skip

T = TypeVar("T")


class SchemaError(TypeError):
    """A type hint that has no form in Flow. Mend the hint."""


class Mismatch(ValueError):
    """A value that does not fit its hint; says where."""


@dataclass(frozen=True)
class Approved(Generic[T]):
    """Flow's ``approved<T>``: a value, and who let it pass."""

    value: T
    by: list[str]


@dataclass(frozen=True)
class Happened(Generic[T]):
    """A verdict: the effect happened, with this result."""

    result: T


@dataclass(frozen=True)
class NotHappened:
    """A verdict: the effect did not happen."""


@dataclass(frozen=True)
class CannotTell:
    """A verdict: nobody knows."""


Verdict = Union[Happened[T], NotHappened, CannotTell]
"""Flow's ``Verdict<T>``: what a ``verify`` activity gives."""

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "string", "pattern": r"^(\d+(ms|[smhd]))+$"},
    bytes: {"type": "string", "contentEncoding": "base64"},
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping)
_WRAPPERS = tuple(wrapper for name in ("Required", "NotRequired", "ReadOnly") if (wrapper := getattr(typing, name, None)) is not None)
MISSING: Any = object()


@dataclass(frozen=True)
class _Field:
    name: str
    hint: Any
    required: bool
    default: Any = MISSING
    # A field of a TypedDict that is left out stays out; elsewhere it becomes None.
    omits: bool = False


def schema(hint: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a type hint."""
    writer = _Writer()
    return writer.finish(writer.of(hint, "the type"))


class _Writer:
    """Writes schemas; named types stand in ``$defs``, so that one that names itself ends."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}
        self.names: dict[Any, str] = {}

    def finish(self, top: dict[str, Any]) -> dict[str, Any]:
        return {**top, "$defs": self.defs} if self.defs else top

    def of(self, hint: Any, where: str) -> dict[str, Any]:
        hint = _plain(hint)
        if hint is Any or hint is object:
            return {}
        if hint is None or hint is type(None):
            return {"type": "null"}
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
        origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
        if hint is Secret:
            return {"type": "string", "description": "the name of a secret"}
        if origin is Literal:
            return {"enum": [_literal(value, where) for value in args]}
        if origin is Union:
            return self.union(hint, where)
        if origin in _LISTS:
            return {"type": "array", "items": self.of(args[0] if args else Any, f"{where}[]")}
        if origin in _MAPS:
            if args and _plain(args[0]) is not str:
                raise SchemaError(f"{where}: the keys of a map are str, not {args[0]}")
            return {"type": "object", "additionalProperties": self.of(args[1] if args else Any, f"{where}{{}}")}
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return {"enum": [_literal(member.value, where) for member in hint]}
        if _is_record(origin):
            return self.reference(hint, None, where)
        raise SchemaError(
            f"{where}: {_name(hint)} has no JSON form; use str, int, float, bool, Decimal, datetime, timedelta, bytes, "
            "list, dict, Literal, an Enum, a dataclass, a TypedDict, a union of these, or Any"
        )

    def union(self, hint: Any, where: str) -> dict[str, Any]:
        members = typing.get_args(hint)
        variants = _variants(members)
        return {
            "anyOf": [
                self.reference(member, _name(member), where) if _plain(member) in variants else self.of(member, where)
                for member in members
            ]
        }

    def reference(self, hint: Any, tag: str | None, where: str) -> dict[str, Any]:
        key = (hint, tag)
        if key not in self.names:
            name = base = _name(hint)
            count = 1
            while name in self.defs:
                count += 1
                name = f"{base}_{count}"
            self.names[key] = name
            self.defs[name] = {}
            self.defs[name] = self.record(_fields(hint), tag, where)
            doc = _doc(typing.get_origin(hint) or hint)
            if doc:
                self.defs[name]["description"] = doc
        return {"$ref": f"#/$defs/{self.names[key]}"}

    def record(self, fields: list[_Field], tag: str | None, where: str) -> dict[str, Any]:
        properties: dict[str, Any] = {"type": {"const": tag}} if tag else {}
        required = ["type"] if tag else []
        for field in fields:
            part = self.of(field.hint, f"{where}.{field.name}")
            if field.default is not MISSING:
                part["default"] = encode(field.default, field.hint)
            properties[field.name] = part
            if field.required:
                required.append(field.name)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def decode(value: Any, hint: Any, where: str = "value") -> Any:
    """Makes a Python value of JSON, by its hint; raises ``Mismatch``."""
    hint = _plain(hint)
    if hint is Any or hint is object:
        return value
    if hint is None or hint is type(None):
        return None if value is None else _misfit(where, "null", value)
    if hint in _SCALARS:
        return _scalar(value, hint, where)
    if hint is Secret:
        name = value.get("$secret") if isinstance(value, dict) else None
        return Secret(name) if isinstance(name, str) else _misfit(where, "a secret", value)
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Literal:
        found = [member for member in args if _same(_literal(member, where), value)]
        return found[0] if found else _misfit(where, " or ".join(map(repr, args)), value)
    if origin is Union:
        return _one_of(value, hint, where)
    if origin in _LISTS:
        if not isinstance(value, list):
            _misfit(where, "a list", value)
        item = args[0] if args else Any
        return [decode(each, item, f"{where}[{at}]") for at, each in enumerate(value)]
    if origin in _MAPS:
        if not isinstance(value, dict):
            _misfit(where, "an object", value)
        item = args[1] if args else Any
        return {key: decode(each, item, f"{where}.{key}") for key, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        members = [member for member in hint if _same(member.value, value)]
        return members[0] if members else _misfit(where, " or ".join(repr(m.value) for m in hint), value)
    if _is_record(origin):
        given = decode_fields(value, _fields(hint), where)
        return given if typing.is_typeddict(origin) else origin(**given)
    raise SchemaError(f"{where}: {_name(hint)} has no JSON form")


def decode_fields(value: Any, fields: list[_Field], where: str, tagged: bool = False) -> dict[str, Any]:
    """Makes the fields of a record of an object; fields that are left out keep their defaults."""
    if not isinstance(value, dict):
        _misfit(where, "an object", value)
    known = {field.name for field in fields} | ({"type"} if tagged else set())
    if unknown := sorted(set(value) - known):
        raise Mismatch(f"{where}: unknown field {unknown[0]!r}; known are {', '.join(sorted(known)) or 'none'}")
    given = {}
    for field in fields:
        if field.name in value:
            given[field.name] = decode(value[field.name], field.hint, f"{where}.{field.name}")
        elif field.required:
            raise Mismatch(f"{where}.{field.name} is missing")
        elif field.default is MISSING and not field.omits:
            given[field.name] = None
    return given


def encode(value: Any, hint: Any, where: str = "value") -> Any:
    """Makes JSON of a Python value, by its hint; raises ``Mismatch``."""
    hint = _plain(hint)
    if hint is Any or hint is object:
        return to_json(value, where)
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Union:
        return _encode_one_of(value, typing.get_args(hint), where)
    if origin in _LISTS and not isinstance(value, (str, bytes, dict)) and isinstance(value, collections.abc.Iterable):
        item = args[0] if args else Any
        return [encode(each, item, f"{where}[{at}]") for at, each in enumerate(value)]
    if origin in _MAPS and isinstance(value, collections.abc.Mapping):
        item = args[1] if args else Any
        return {_key(key, where): encode(each, item, f"{where}.{key}") for key, each in value.items()}
    if dataclasses.is_dataclass(origin) and isinstance(value, typing.cast(type, origin)):
        return _encode_fields({f.name: getattr(value, f.name) for f in _fields(hint)}, _fields(hint), where)
    if typing.is_typeddict(origin) and isinstance(value, dict):
        return _encode_fields(value, _fields(hint), where)
    encoded = to_json(value, where)
    # What is left is checked by reading it back: what one side writes, the other side takes.
    decode(encoded, hint, where)
    return encoded


def to_json(value: Any, where: str = "value") -> Any:
    """Makes JSON of a Python value by what it is: records without tags, enums by their values."""
    if isinstance(value, enum.Enum):
        return _literal(value.value, where)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return _named(time_text, value, where)
    if isinstance(value, timedelta):
        return _named(duration_text, value, where)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name), f"{where}.{f.name}") for f in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return {_key(key, where): to_json(each, f"{where}.{key}") for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(each, f"{where}[{at}]") for at, each in enumerate(value)]
    raise Mismatch(f"{where}: {_name(type(value))} has no JSON form")


def parameters(fields: dict[str, tuple[Any, Any]]) -> list[_Field]:
    """Makes fields of parameters: name to hint and default, which is ``MISSING`` if there is none."""
    made = []
    for name, (hint, default) in fields.items():
        required = default is MISSING and not _is_optional(hint)
        made.append(_Field(name, hint, required, default))
    return made


def object_schema(fields: list[_Field], where: str, description: str = "") -> dict[str, Any]:
    """Returns the JSON Schema of an object with these fields."""
    writer = _Writer()
    top = writer.record(fields, None, where)
    return writer.finish({"description": description, **top} if description else top)


def _plain(hint: Any) -> Any:
    """Takes off what says nothing about the form of a value."""
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated or (origin is not None and origin in _WRAPPERS):
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif origin is types.UnionType:
            hint = Union[typing.get_args(hint)]
        elif isinstance(hint, TypeVar):
            return Any
        else:
            return hint


def _is_optional(hint: Any) -> bool:
    hint = _plain(hint)
    return typing.get_origin(hint) is Union and type(None) in typing.get_args(hint)


def _is_record(origin: Any) -> bool:
    return isinstance(origin, type) and (dataclasses.is_dataclass(origin) or typing.is_typeddict(origin))


def _variants(members: tuple[Any, ...]) -> list[Any]:
    """Returns the members of a union that carry a tag: its dataclasses, if there are several."""
    records = [_plain(m) for m in members if dataclasses.is_dataclass(typing.get_origin(_plain(m)) or _plain(m))]
    return records if len(records) > 1 else []


def _name(hint: Any) -> str:
    origin = typing.get_origin(hint) or hint
    return str(getattr(origin, "__name__", origin))


def _doc(of: Any) -> str:
    doc = (getattr(of, "__doc__", None) or "").strip()
    # A dataclass without a text of its own gets its signature as one.
    return "" if doc.startswith(f"{getattr(of, '__name__', '')}(") or (typing.is_typeddict(of) and not doc) else doc


def _fields(hint: Any) -> list[_Field]:
    origin = typing.get_origin(hint) or hint
    hints = typing.get_type_hints(origin, include_extras=True)
    filled = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(hint), strict=False))
    if typing.is_typeddict(origin):
        required = origin.__required_keys__
        return [_Field(name, _fill(hints[name], filled), name in required, omits=name not in required) for name in hints]
    made = []
    for field in dataclasses.fields(typing.cast(Any, origin)):
        if not field.init:
            continue
        own = _fill(hints[field.name], filled)
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        has_default = default is not dataclasses.MISSING
        made.append(_Field(field.name, own, not has_default and not _is_optional(own), default if has_default else MISSING))
    return made


def _fill(hint: Any, filled: dict[Any, Any]) -> Any:
    """Puts arguments in the place of a generic dataclass's parameters."""
    if isinstance(hint, TypeVar):
        return filled.get(hint, Any)
    free = getattr(hint, "__parameters__", ())
    return hint[tuple(filled.get(each, Any) for each in free)] if free and filled else hint


def _scalar(value: Any, hint: Any, where: str) -> Any:
    if hint is bool:
        return value if isinstance(value, bool) else _misfit(where, "true or false", value)
    if hint is int:
        return value if isinstance(value, int) and not isinstance(value, bool) else _misfit(where, "an integer", value)
    if hint is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        return _named(float, value, where) if fits else _misfit(where, "a number", value)
    if not isinstance(value, str):
        _misfit(where, "text", value)
    read = {Decimal: parse_decimal, datetime: parse_time, timedelta: parse_duration, bytes: parse_bytes}.get(hint)
    return _named(read, value, where) if read else value


def _one_of(value: Any, hint: Any, where: str) -> Any:
    members = typing.get_args(hint)
    variants = _variants(members)
    if variants and isinstance(value, dict) and "type" in value:
        for variant in variants:
            if _name(variant) == value["type"]:
                return (typing.get_origin(variant) or variant)(**decode_fields(value, _fields(variant), where, tagged=True))
        _misfit(f"{where}.type", " or ".join(_name(variant) for variant in variants), value["type"])
    faults = []
    for member in members:
        if _plain(member) in variants:
            continue
        try:
            return decode(value, member, where)
        except Mismatch as error:
            # Of `T | None` only T is worth a word.
            if member is not type(None):
                faults.append(str(error))
    raise Mismatch(faults[0] if len(faults) == 1 else f"{where}: nothing of {_short(hint)} fits {_shown(value)}")


def _encode_one_of(value: Any, members: tuple[Any, ...], where: str) -> Any:
    variants = _variants(members)
    for variant in variants:
        if isinstance(value, typing.get_origin(variant) or variant):
            return {"type": _name(variant), **encode(value, variant, where)}
    if variants and isinstance(value, collections.abc.Mapping) and "type" in value:
        encoded = to_json(value, where)
        decode(encoded, Union[members], where)
        return encoded
    for member in members:
        if _plain(member) in variants:
            continue
        try:
            return encode(value, member, where)
        except Mismatch:
            continue
    raise Mismatch(f"{where}: {_shown(value)} is none of {', '.join(map(_short, members))}")


def _encode_fields(values: typing.Mapping[str, Any], fields: list[_Field], where: str) -> dict[str, Any]:
    known = {field.name for field in fields}
    if unknown := sorted(set(values) - known):
        raise Mismatch(f"{where}: unknown field {unknown[0]!r}")
    made = {}
    for field in fields:
        if field.name in values:
            made[field.name] = encode(values[field.name], field.hint, f"{where}.{field.name}")
        elif field.required:
            raise Mismatch(f"{where}.{field.name} is missing")
    return made


def _literal(value: Any, where: str) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, (str, int, bool)):
        return value
    raise SchemaError(f"{where}: {value!r} has no JSON form; text, integers and booleans have one")


def _same(one: Any, other: Any) -> bool:
    # `True == 1` in Python, but not in JSON.
    return type(one) is type(other) and bool(one == other)


def _key(key: Any, where: str) -> str:
    return key if isinstance(key, str) else _misfit(where, "keys that are text", key)


def _named(call: Any, value: Any, where: str) -> Any:
    try:
        return call(value)
    except (ValueError, OverflowError) as error:
        raise Mismatch(f"{where}: {error}") from None


def _misfit(where: str, expected: str, value: Any) -> Any:
    raise Mismatch(f"{where}: {expected} is expected, not {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _short(hint: Any) -> str:
    return _name(hint) if isinstance(hint, type) else str(hint).replace("typing.", "")
