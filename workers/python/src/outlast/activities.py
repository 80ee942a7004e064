"""Activities: functions that flows call, and how their attempts end.

Leaves the connection to ``worker``. An attempt ends with a value, with a ``Failure``, or it is stopped from outside; there is no
fourth way.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal, TypeVar, overload

from . import schemas
from .context import Context
from .forms import duration_text

__all__ = ["Activity", "DeclaredError", "Done", "Failure", "activity"]

F = TypeVar("F", bound=Callable[..., Any])
Effect = Literal["pure", "idempotent", "once"]

_FRAME = ("kind", "text", "retryable", "retry_after")


class Failure(Exception):
    """The answer that an attempt failed; the flow's retry policy decides what comes of it.

    For an activity of class ``once`` it says that the effect did *not* happen. Whatever else such an activity raises leaves it in
    doubt. ``fields`` are those of an error that the flow declares under the name ``kind``. ``cost`` and ``usage`` say what the
    attempt took, as those of ``Done`` do: it counts for the run although the attempt failed.
    """

    def __init__(
        self,
        kind: str,
        text: str = "",
        *,
        retryable: bool = False,
        retry_after: timedelta | None = None,
        cost: Decimal | None = None,
        usage: Any = None,
        **fields: Any,
    ) -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind
        self.text = text
        # Whoever says when to come back means that coming back helps.
        self.retryable = retryable or retry_after is not None
        self.retry_after = retry_after
        self.cost = cost
        self.usage = usage
        self.fields = fields

    def to_json(self) -> dict[str, Any]:
        """Returns the error as a report carries it; the names of the frame win over fields of the same name."""
        fields = {name: value for name, value in self.fields.items() if name not in _FRAME}
        error = {**schemas.to_json(fields, self.kind), "kind": self.kind, "text": self.text, "retryable": self.retryable}
        if self.retry_after is not None:
            error["retry_after"] = duration_text(self.retry_after)
        return error


class DeclaredError(Failure):
    """The base of errors that a flow declares: a subclass's name is the error's, its annotations are the fields.

    ::

        class OutOfStock(DeclaredError):
            item: str

        raise OutOfStock("none left", item="pears")
    """

    def __init__(
        self,
        text: str = "",
        *,
        retryable: bool = False,
        retry_after: timedelta | None = None,
        cost: Decimal | None = None,
        usage: Any = None,
        **fields: Any,
    ) -> None:
        kind = type(self).__name__
        hints = {
            name: (hint, getattr(type(self), name, schemas.MISSING))
            for name, hint in typing.get_type_hints(type(self)).items()
            if name not in _FRAME
        }
        # A field of the flow's error may have one of these names; then it is meant.
        if "cost" in hints:
            fields, cost = ({**fields, "cost": cost} if cost is not None else fields), None
        if "usage" in hints:
            fields, usage = ({**fields, "usage": usage} if usage is not None else fields), None
        if unknown := sorted(set(fields) - set(hints)):
            raise TypeError(f"{kind} has no field {unknown[0]!r}")
        given = {name: fields.get(name, default) for name, (_, default) in hints.items()}
        if missing := sorted(name for name, value in given.items() if value is schemas.MISSING):
            raise TypeError(f"{kind} needs its field {missing[0]!r}")
        encoded = {name: schemas.encode(value, hints[name][0], f"{kind}.{name}") for name, value in given.items()}
        super().__init__(kind, text, retryable=retryable, retry_after=retry_after, cost=cost, usage=usage)
        self.fields = encoded
        self.__dict__.update(given)


@dataclass(frozen=True)
class Done:
    """A result that cost something, or that says what was used; a plain value is a result, too."""

    value: Any
    cost: Decimal | None = None
    usage: Any = None


@dataclass(frozen=True)
class Activity:
    """A function with what a runtime must know of it. Calling it calls the function."""

    name: str
    function: Callable[..., Any]
    effect: str
    description: str
    input: dict[str, Any]
    output: dict[str, Any]
    is_async: bool
    isolated: bool
    manual_heartbeat: bool
    _parameters: list[Any] = field(repr=False)
    _returns: Any = field(repr=False)
    _context: str | None = field(repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def offer(self) -> dict[str, Any]:
        """Returns what ``register`` says of it."""
        return {"name": self.name, "input": self.input, "output": self.output, "effect": self.effect}

    def arguments(self, given: Any, context: Context) -> dict[str, Any]:
        """Makes the function's arguments of a task's input; raises ``Failure`` of kind ``BadInput``."""
        try:
            arguments = schemas.decode_fields(given if given is not None else {}, self._parameters, "input")
        except Exception as error:
            # A record's own checks count, too: the function was not called, so nothing happened.
            raise Failure("BadInput", str(error) or type(error).__name__) from error
        if self._context is not None:
            arguments[self._context] = context
        return arguments

    def result(self, value: Any) -> Done:
        """Makes the report's value of what the function gave; raises ``Mismatch``."""
        done = value if isinstance(value, Done) else Done(value)
        encoded = schemas.encode(done.value, self._returns, "result")
        return Done(encoded, done.cost, None if done.usage is None else schemas.to_json(done.usage, "usage"))


@overload
def activity(function: F, /) -> F: ...


@overload
def activity(
    *,
    name: str | None = None,
    effect: Effect | None = None,
    heartbeat: Literal["automatic", "manual"] = "automatic",
    isolated: bool = False,
) -> Callable[[F], F]: ...


def activity(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    effect: Effect | None = None,
    heartbeat: Literal["automatic", "manual"] = "automatic",
    isolated: bool = False,
) -> Any:
    """Makes an activity of a function, plain or ``async``; type hints give its schemas, the docstring its description.

    ``effect`` is the strongest promise that the function keeps: ``pure`` (may run again at will), ``idempotent`` (may run again with
    the same ``context.key``) or ``once``; left out, it serves whatever class a flow declares. ``isolated`` runs each attempt of a
    plain function in a process of its own, which is killed when the attempt must end. With ``heartbeat="manual"`` signs of life are
    given by ``context.heartbeat()`` alone, so that a function that hangs is noticed.
    """

    def make(function: Any) -> Any:
        made = _describe(function, name, effect, heartbeat == "manual", isolated)
        # The function stays what it is for whoever calls or pickles it.
        function.__outlast__ = made
        return function

    return make if function is None else make(function)


def of(function: Any) -> Activity:
    """Returns the activity of a function, marked with ``@activity`` or not."""
    if isinstance(function, Activity):
        return function
    found = getattr(function, "__outlast__", None)
    return found if isinstance(found, Activity) else _describe(function, None, None, False, False)


def _describe(function: Any, name: str | None, effect: str | None, manual: bool, isolated: bool) -> Activity:
    if effect not in (None, "pure", "idempotent", "once"):
        raise ValueError(f"effect is {effect!r}; 'pure', 'idempotent' or 'once' is expected")
    called = name or function.__name__
    is_async = inspect.iscoroutinefunction(function)
    if is_async and isolated:
        raise ValueError(f"{called}: an async function cannot be isolated; it is cancelled instead")
    hints = typing.get_type_hints(function, include_extras=True)
    context, given = None, {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise schemas.SchemaError(f"{called}: arguments come by name, so {parameter} has no place")
        hint = hints.get(parameter.name, Any)
        if hint is Context:
            context = parameter.name
        else:
            empty = parameter.default is parameter.empty
            given[parameter.name] = (hint, schemas.MISSING if empty else parameter.default)
    fields = schemas.parameters(given)
    description = inspect.getdoc(function) or ""
    returns = hints.get("return", Any)
    # An activity that says `-> Done` says nothing of its value.
    returns = Any if returns is Done else returns
    return Activity(
        name=called,
        function=function,
        effect=effect or "",
        description=description,
        input=schemas.object_schema(fields, called, description),
        output=schemas.schema(returns),
        is_async=is_async,
        isolated=isolated,
        manual_heartbeat=manual,
        _parameters=fields,
        _returns=returns,
        _context=context,
    )
