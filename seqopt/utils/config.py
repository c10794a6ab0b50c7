"""How a part is written down as JSON values, and made again from them.

A part (a kernel, an encoder, a surrogate, an acquisition function, a search, a strategy, a space) is described by its
type and the arguments of its constructor, which may be parts themselves. By default an argument is the attribute of the
same name, as in scikit-learn's ``get_params``; a class whose attributes are called otherwise says what its arguments
are in `Configurable.config_arguments`. The description is what a run or a campaign keeps, and what it is held against
when it is resumed.

Nothing is imported and nothing is executed by a description: a type is looked up among the classes that have been
defined.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeGuard

from seqopt.errors import InputError

Config = dict[str, Any]
"""A description: ``{"type": NAME, ...}`` with the arguments of the constructor."""

_TYPES: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
_CODECS: dict[type, Callable[[Any], Config]] = {}


class NotConfigurableError(InputError):
    """A part that cannot be written down, such as a function."""


class Configurable:
    """A part that can be written down and made again.

    Inheriting registers the class under its name: that of the class alone for seqopt's own, with its module for others.

    Example:
        >>> class Scaled(Configurable):
        ...     def __init__(self, factor=2.0, inner=None):
        ...         self.factor = factor
        ...         self.inner = inner
        >>> config = Scaled(3.0, Scaled()).config()
        >>> made = from_config(config)
        >>> made.factor, made.inner.factor, made.config() == config
        (3.0, 2.0, True)
    """

    config_name: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__module__.split(".")[0] == "seqopt"
        cls.config_name = cls.__qualname__ if own else f"{cls.__module__}.{cls.__qualname__}"
        _TYPES[cls.config_name] = cls.from_config

    def config_arguments(self) -> Mapping[str, Any]:
        """Arguments of the constructor that make this part again, by name.

        What a subclass takes beyond them is added from its attributes of the same names.
        """
        return {name: getattr(self, name) for name in argument_names(type(self)) if hasattr(self, name)}

    def config(self) -> Config:
        """The part as JSON values.

        Raises:
            NotConfigurableError: If an argument cannot be written down or is not known, or the constructor takes other
                ones; the message names it.
        """
        found: Config = {"type": self.config_name}
        arguments = _arguments_of(self)
        _check_arguments(type(self), arguments)
        for name, value in arguments.items():
            try:
                found[name] = config_of(value)
            except NotConfigurableError as error:
                raise NotConfigurableError(f"{name} of {self.config_name}: {error}") from error
        return found

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The part that `config` described.

        Raises:
            InputError: If it does not fit the constructor.
        """
        return construct(cls, config)


def argument_names(cls: type) -> list[str]:
    """Names of the arguments of a constructor, apart from ``*args`` and ``**kwargs``."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except ValueError:  # a class written in another language
        return []
    return [one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def _arguments_of(part: Configurable) -> dict[str, Any]:
    """What `Configurable.config_arguments` says, and what else a subclass that inherits it has as attributes."""
    said = dict(part.config_arguments())
    further = (name for name in _further_names(type(part)) if name not in said and hasattr(part, name))
    return said | {name: getattr(part, name) for name in further}


def _further_names(cls: type[Configurable]) -> list[str]:
    """Arguments of a constructor that the class which says what the arguments are does not take."""
    speaker = next(base for base in cls.__mro__ if "config_arguments" in vars(base))
    known = [] if speaker is Configurable else argument_names(speaker)
    return [name for name in argument_names(cls) if name not in known]


def _check_arguments(cls: type[Configurable], arguments: Mapping[str, Any]) -> None:
    """Refuse to write down what could not be made again, as of a subclass with a constructor of its own."""
    unknown = next((name for name in _further_names(cls) if name not in arguments), None)
    if unknown is not None:
        raise NotConfigurableError(
            f"{cls.config_name} takes {unknown}, and has no attribute of that name: keep it as one, or override "
            "config_arguments"
        )
    if cls.from_config.__func__ is not Configurable.from_config.__func__:  # type: ignore[attr-defined]
        return  # a class that makes itself in its own way knows what it takes
    try:
        inspect.signature(cls).bind(**arguments)
    except TypeError as error:
        raise NotConfigurableError(
            f"{cls.config_name} does not take the arguments that it would be made again with ({error}): override "
            "config_arguments"
        ) from error


def construct(cls: Callable[..., Any], config: Mapping[str, Any]) -> Any:
    """Call a constructor with the arguments of a description.

    Raises:
        InputError: If they do not fit it; the message names both.
    """
    arguments = {name: from_config(value) for name, value in config.items() if name != "type"}
    try:
        inspect.signature(cls).bind(**arguments)
    except TypeError as error:
        raise InputError(
            f"the description of a {config.get('type')} does not fit this version of it: {error}. It was written by "
            "another version of seqopt, or by hand"
        ) from error
    return cls(**arguments)


def register_codec(
    cls: type, write: Callable[[Any], Config], make: Callable[[Mapping[str, Any]], Any] | None = None
) -> None:
    """Teach the descriptions a class of another library.

    Args:
        cls: The class.
        write: Arguments of its constructor, as values that `config_of` takes.
        make: Makes it from its description; by default its constructor with these arguments.
    """
    _CODECS[cls] = write
    _TYPES[cls.__qualname__] = make or (lambda config: construct(cls, config))


def config_of(value: Any) -> Any:
    """A part, or a plain value, as JSON values.

    Raises:
        NotConfigurableError: For what cannot be written down.

    Example:
        >>> config_of((1, 2.5, None)), config_of(float("inf"))
        ([1, 2.5, None], {'type': 'float', 'value': 'inf'})
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": str(value)}
    if isinstance(value, Configurable):
        return value.config()
    if type(value) in _CODECS:
        written = {name: config_of(item) for name, item in _CODECS[type(value)](value).items()}
        return {"type": type(value).__qualname__, **written}
    if _is_array(value):
        return config_of(value.tolist())
    if isinstance(value, Mapping):
        return {"type": "mapping", "items": [[config_of(key), config_of(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [config_of(item) for item in value]
    name = getattr(value, "__qualname__", type(value).__qualname__)
    raise NotConfigurableError(
        f"{name} cannot be written down: it is not a plain value, and its class does not inherit "
        "seqopt.utils.config.Configurable"
    )


def from_config(config: Any) -> Any:
    """What `config_of` wrote.

    Raises:
        InputError: For a type that is not known, or arguments that do not fit it.
    """
    if isinstance(config, list):
        return [from_config(item) for item in config]
    if not isinstance(config, Mapping):
        return config
    kind = config.get("type")
    if kind == "float":
        return float(config["value"])
    if kind == "mapping":
        return {from_config(key): from_config(item) for key, item in config["items"]}
    make = _TYPES.get(str(kind))
    if make is None:
        raise InputError(
            f"there is no part of the type {kind!r}: import the module that defines it first, or use the version of "
            "seqopt that wrote its description"
        )
    return make(config)


def described(part: object) -> Config:
    """The description of a part; where something in it cannot be written down, its type and its plain attributes.

    Such a description says ``"custom": True``. It tells parts from each other, but none is made from it.

    Example:
        >>> class Mine:
        ...     def __init__(self):
        ...         self.depth, self.function = 3, len
        >>> described(Mine()) == {"type": f"{Mine.__module__}.Mine", "custom": True, "depth": 3}
        True
    """
    try:
        found: Config = config_of(part)
        return found
    except NotConfigurableError:
        pass
    if isinstance(part, Configurable):
        arguments = {name: _described_value(value) for name, value in _arguments_of(part).items()}
        return {"type": part.config_name, "custom": True} | arguments
    cls = type(part)
    plain = {
        name: config_of(value)
        for name, value in sorted(getattr(part, "__dict__", {}).items())
        if not name.startswith("_") and name != "training" and isinstance(value, bool | int | float | str | None)
    }
    # A kernel or another module of torch: its parameters, bounds and priors.
    state = part.state_dict() if hasattr(part, "named_parameters") and hasattr(part, "state_dict") else None
    tensors = {} if state is None else {"state": {name: config_of(tensor.tolist()) for name, tensor in state.items()}}
    return {"type": f"{cls.__module__}.{cls.__qualname__}", "custom": True} | plain | tensors


def _described_value(value: object) -> Any:
    try:
        return config_of(value)
    except NotConfigurableError:
        # What holds a part that cannot be written down is told by all that it holds.
        if isinstance(value, Mapping):
            return {
                "type": "mapping",
                "items": [[config_of(key), _described_value(item)] for key, item in value.items()],
            }
        if isinstance(value, list | tuple):
            return [_described_value(item) for item in value]
        # A function goes by its name: what it does is not known.
        name = getattr(value, "__qualname__", None)
        return name if isinstance(name, str) else described(value)


def is_config(value: object) -> bool:
    """Whether something is the description of a part that can be made again."""
    return isinstance(value, Mapping) and str(value.get("type")) in _TYPES and not value.get("custom")


def same(config: Any, other: Any, ignored: Iterable[str] = ()) -> bool:
    """Whether two descriptions are equal, apart from arguments of some names, wherever they stand.

    Example:
        >>> same({"type": "K", "order": 3, "decay": 0.5}, {"type": "K", "order": 3, "decay": 0.8}, ["decay"])
        True
    """
    ignored = set(ignored)
    if isinstance(config, Mapping) and isinstance(other, Mapping):
        names = (set(config) | set(other)) - ignored
        return all(same(config.get(name), other.get(name), ignored) for name in names)
    if _is_list(config) and _is_list(other):
        return len(config) == len(other) and all(same(a, b, ignored) for a, b in zip(config, other, strict=True))
    return bool(config == other)


LONGEST_SHOWN = 60
"""Characters of a value that a message shows as it is."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two descriptions, or between two mappings that hold some: texts for a message.

    Of parts of two types only the types are named. Long values are abridged.

    Example:
        >>> differences({"part": {"type": "K", "order": 3}}, {"part": {"type": "K", "order": 4}})
        ['part.order was 3, is now 4']
        >>> differences({"parts": [{"type": "K"}, {"order": 3}]}, {"parts": [{"type": "K"}, {"order": 4}]})
        ['parts[2].order was 3, is now 4']
        >>> differences({"protein": 40 * "MK"}, {"protein": 39 * "MK" + "MR"})[0].split(", is now ")[1]
        "'MKMKMKMKMKMKMKMK'... (80 characters; another from 80 on)"
    """
    return [_difference(name, before, after) for name, before, after in _changes(old, new, "")]


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any, Any]]:
    # What a part of another type is made of says no more than its type.
    names = ["type"] if old.get("type") != new.get("type") else sorted(set(old) | set(new))
    for name in names:
        before, after = old.get(name), new.get(name)
        if before == after or name == "custom":
            continue
        if all(value is None or isinstance(value, Mapping) for value in (before, after)):
            yield from _changes(before or {}, after or {}, f"{prefix}{name}.")
        elif _are_parts(before) and _are_parts(after) and len(before) == len(after):
            for number, (one, other) in enumerate(zip(before, after, strict=True), start=1):
                yield from _changes(one, other, f"{prefix}{name}[{number}].")
        else:
            yield f"{prefix}{name}", before, after


def _difference(name: str, old: Any, new: Any) -> str:
    first = ""
    if isinstance(old, str | list) and type(old) is type(new):
        equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
        first = f"; another from {sum(1 for _ in equal) + 1} on"
    return f"{name} was {_shown(old)}, is now {_shown(new, first)}"


def _shown(value: Any, remark: str = "") -> str:
    text = repr(value)
    if len(text) <= LONGEST_SHOWN:
        return text
    if isinstance(value, str):
        return f"{value[:16]!r}... ({len(value):,} characters{remark})"
    return f"{text[:24]}... ({len(value):,} items{remark})" if isinstance(value, list | dict) else f"{text[:24]}..."


def _are_parts(value: object) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_array(value: object) -> bool:
    """Whether something is of numpy or torch, which need not be loaded to know that."""
    return type(value).__module__.split(".")[0] in ("numpy", "torch") and hasattr(value, "tolist")
