"""Type hints as JSON Schemas, and values there and back."""

from __future__ import annotations

import enum
import math
import typing
import unittest
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal, TypedDict, Union

from outlast import (
    Approved,
    CannotTell,
    Context,
    DeclaredError,
    Failure,
    Happened,
    NotHappened,
    SchemaError,
    Verdict,
    activities,
    activity,
    schema,
)
from outlast.forms import dump, duration_text, parse_duration, parse_time, time_text
from outlast.schemas import Mismatch, decode, encode

NotRequired: Any = getattr(typing, "NotRequired", None)


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Item:
    """A thing in a basket."""

    name: str
    price: Decimal
    tags: list[str] = field(default_factory=list)
    due: datetime | None = None
    wait: timedelta = timedelta(minutes=5)


@dataclass
class Tree:
    label: str
    children: list[Tree]


@dataclass
class Paid:
    total: Decimal


@dataclass
class Refused:
    why: str


class Options(TypedDict, total=False):
    depth: int


class Schemas(unittest.TestCase):
    def test_scalars_have_the_forms_of_flow(self) -> None:
        for hint, expected in [
            (str, {"type": "string"}),
            (int, {"type": "integer"}),
            (bool, {"type": "boolean"}),
            (float, {"type": "number"}),
            (None, {"type": "null"}),
            (Any, {}),
            (Decimal, {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}),
            (datetime, {"type": "string", "format": "date-time"}),
            (timedelta, {"type": "string", "pattern": r"^(\d+(ms|[smhd]))+$"}),
            (bytes, {"type": "string", "contentEncoding": "base64"}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
            (Union[str, None], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Colour, {"enum": ["red", "green"]}),
        ]:
            with self.subTest(hint=hint):
                self.assertEqual(schema(hint), expected)

    def test_records_stand_in_defs_and_may_name_themselves(self) -> None:
        found = schema(Tree)
        self.assertEqual(found["$ref"], "#/$defs/Tree")
        tree = found["$defs"]["Tree"]
        self.assertEqual(tree["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})
        self.assertEqual((tree["required"], tree["additionalProperties"]), (["label", "children"], False))
        item = schema(list[Item])["$defs"]["Item"]
        self.assertEqual((item["required"], item["description"]), (["name", "price"], "A thing in a basket."))
        self.assertEqual(item["properties"]["wait"]["default"], "5m")

    def test_a_union_of_records_is_tagged(self) -> None:
        found = schema(Paid | Refused)
        self.assertEqual(found["anyOf"], [{"$ref": "#/$defs/Paid"}, {"$ref": "#/$defs/Refused"}])
        self.assertEqual(found["$defs"]["Paid"]["properties"]["type"], {"const": "Paid"})
        self.assertEqual(found["$defs"]["Paid"]["required"], ["type", "total"])

    def test_verdicts_and_approvals_are_flows_own(self) -> None:
        names = {name: each["properties"] for name, each in schema(Verdict[str])["$defs"].items()}
        self.assertEqual(names["Happened"], {"type": {"const": "Happened"}, "result": {"type": "string"}})
        self.assertEqual(sorted(names), ["CannotTell", "Happened", "NotHappened"])
        self.assertEqual(encode(Happened("k"), Verdict[str]), {"type": "Happened", "result": "k"})
        self.assertEqual(encode(NotHappened(), Verdict[str]), {"type": "NotHappened"})
        self.assertEqual(encode(CannotTell(), Verdict[str]), {"type": "CannotTell"})
        self.assertEqual(decode({"value": {"total": "1"}, "by": ["ann"]}, Approved[Paid]), Approved(Paid(Decimal(1)), ["ann"]))

    def test_what_has_no_form_is_refused_when_it_is_declared(self) -> None:
        for hint in [set[int], tuple[int, str], complex, object.__init__, dict[int, str], Literal[b"x"]]:
            with self.subTest(hint=hint), self.assertRaises(SchemaError):
                schema(hint)
        with self.assertRaisesRegex(SchemaError, r"take\.what\[\]: complex has no JSON form"):

            @activity
            def take(what: list[complex]) -> None: ...

        with self.assertRaisesRegex(SchemaError, "arguments come by name"):

            @activity
            def variadic(*what: int) -> None: ...


class Values(unittest.TestCase):
    def test_values_go_there_and_back(self) -> None:
        at = datetime(2027, 3, 14, 2, 30, tzinfo=timezone.utc)
        for hint, value, written in [
            (Item, Item("a", Decimal("0.40"), ["x"], at, timedelta(hours=1)), None),
            (Tree, Tree("a", [Tree("b", [])]), {"label": "a", "children": [{"label": "b", "children": []}]}),
            (Paid | Refused, Refused("no"), {"type": "Refused", "why": "no"}),
            (list[Paid | Refused], [Paid(Decimal(1))], [{"type": "Paid", "total": "1"}]),
            (Colour | None, Colour.RED, "red"),
            (Colour | None, None, None),
            (bytes, b"\x00\xff", "AP8="),
            (dict[str, datetime], {"a": at}, {"a": "2027-03-14T02:30:00.000Z"}),
            (Options, {"depth": 3}, {"depth": 3}),
            (Options, {}, {}),
            (int | str, "3", "3"),
            (float, 1.5, 1.5),
        ]:
            with self.subTest(hint=hint, value=value):
                json = encode(value, hint)
                self.assertEqual(json, written if written is not None else json)
                self.assertEqual(decode(json, hint), value)
                dump(json)

    def test_what_does_not_fit_is_said_with_its_place(self) -> None:
        good = {"name": "a", "price": "1"}
        for hint, value, message in [
            (int, "1", "value: an integer is expected, not '1'"),
            (int, True, "value: an integer"),
            (bool, 1, "value: true or false"),
            (list[int], [1, "x"], r"value\[1\]: an integer"),
            (Item, {"name": "a"}, r"value\.price is missing"),
            (Item, {**good, "colour": 1}, "value: unknown field 'colour'"),
            (Item, {**good, "price": "1e3"}, r"value\.price: a decimal"),
            (Item, {**good, "due": "yesterday"}, r"value\.due: an RFC 3339 time"),
            (Item, {**good, "due": "2027-02-30T00:00:00Z"}, r"value\.due: day is out of range"),
            (Paid | Refused, {"type": "Lost"}, r"value\.type: Paid or Refused"),
            (Paid | Refused, {"total": "1"}, "value: nothing of"),
            (Colour, "blue", "'red' or 'green'"),
            (Literal[1], True, "1 is expected, not True"),
            (bytes, "AP8", "base64"),
        ]:
            with self.subTest(hint=hint, value=value), self.assertRaisesRegex(Mismatch, message):
                decode(value, hint)
        for value, hint in (("0001-01-01T00:00:00+01:00", datetime), (10**400, float)):
            with self.subTest(hint=hint), self.assertRaises(Mismatch):
                decode(value, hint)
        with self.assertRaisesRegex(Mismatch, "needs a time zone"):
            encode(datetime(2027, 1, 1), datetime)
        with self.assertRaisesRegex(Mismatch, "an integer is expected"):
            encode("1", int)
        with self.assertRaises(ValueError):
            dump(math.nan)

    def test_durations_and_times_are_the_runtimes_text(self) -> None:
        for ms, text in [(0, "0s"), (90_000, "1m30s"), (250, "250ms"), (5_400_001, "1h30m1ms"), (172_800_000, "2d")]:
            self.assertEqual(duration_text(timedelta(milliseconds=ms)), text)
            self.assertEqual(parse_duration(text), timedelta(milliseconds=ms))
        for text in ["", "30", "s", "-5s", "5 s", "5y", "1s1m", "1s1s", "200000d", "5sé", "٣s"]:
            with self.subTest(text=text), self.assertRaises(ValueError):
                parse_duration(text)
        for text in ["2027-03-14T02:30:00Z", "2027-03-14T03:30:00+01:00", "2027-03-13t21:30:00.0000001-05:00"]:
            self.assertEqual(time_text(parse_time(text)), "2027-03-14T02:30:00.000Z")

    def test_half_a_surrogate_becomes_a_replacement(self) -> None:
        self.assertEqual(dump({"a": "x\ud800y"}), '{"a":"x\ufffdy"}'.encode())


class Activities(unittest.TestCase):
    def test_an_offer_is_derived_from_the_function(self) -> None:
        @activity(name="buy", effect="idempotent")
        async def checkout(items: list[Item], context: Context, note: str | None, times: int = 2) -> Paid | Refused:
            """Buys things."""
            return Refused("closed")

        offer = activities.of(checkout).offer()
        self.assertEqual((offer["name"], offer["effect"], offer["input"]["description"]), ("buy", "idempotent", "Buys things."))
        self.assertEqual(list(offer["input"]["properties"]), ["items", "note", "times"])
        self.assertEqual((offer["input"]["required"], offer["input"]["properties"]["times"]["default"]), (["items"], 2))
        self.assertTrue(activities.of(checkout).is_async)

    def test_arguments_are_decoded_and_results_encoded(self) -> None:
        @activity
        def add(a: int, b: int = 1) -> int:
            return a + b

        self.assertEqual(add(2), 3)
        made, context = activities.of(add), Context.alone()
        self.assertEqual(add(**made.arguments({"a": 1}, context)), 2)
        for given, message in [
            ({"a": "1"}, r"input\.a: an integer"),
            ({}, r"input\.a is missing"),
            ({"a": 1, "c": 1}, "unknown field 'c'"),
        ]:
            with self.subTest(given=given), self.assertRaisesRegex(Failure, f"BadInput: .*{message}"):
                made.arguments(given, context)
        with self.assertRaisesRegex(Mismatch, "result: an integer is expected"):
            made.result("three")

    def test_declared_errors_carry_their_fields(self) -> None:
        class OutOfStock(DeclaredError):
            item: str
            left: int = 0

        error = OutOfStock("none left", item="pears", retry_after=timedelta(seconds=90))
        self.assertEqual(error.to_json(), {
            "kind": "OutOfStock", "text": "none left", "retryable": True, "retry_after": "1m30s", "item": "pears", "left": 0,
        })  # fmt: skip
        self.assertEqual(error.item, "pears")
        for fields in [{}, {"item": "a", "colour": "red"}]:
            with self.subTest(fields=fields), self.assertRaises(TypeError):
                OutOfStock("", **fields)
        with self.assertRaises(Mismatch):
            OutOfStock("", item=3)

    def test_an_unknown_effect_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "'pure', 'idempotent' or 'once' is expected"):
            activity(effect="twice")(lambda: None)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
