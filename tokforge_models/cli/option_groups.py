"""Groups of options that commands take together: a command names the group, and gets its value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from tokforge_models.cli.options import (
    Backend,
    Connections,
    DraftThreads,
    DynamicOption,
    Endpoint,
    Force,
    LimitRate,
    Memory,
    MinP,
    Offline,
    Precision,
    PresencePenalty,
    RepetitionPenalty,
    Seed,
    Temperature,
    Threads,
    TopK,
    TopP,
    bytes_a_second,
)

if TYPE_CHECKING:
    from tokforge_engine import Sampling
    from tokforge_models.sources.network import Network

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Fetching:
    """How the network may be used."""

    endpoint: Endpoint = None
    connections: Connections = 4
    limit_rate: LimitRate = None
    offline: Offline = False

    def network(self) -> Network:
        """The same, as sources take it.

        Raises:
            UsageError: the rate cannot be.
        """
        from tokforge_models.sources.network import Network

        return Network(
            endpoint=self.endpoint,
            connections=self.connections,
            limit_rate=bytes_a_second(self.limit_rate),
            offline=self.offline,
        )


@dataclass(frozen=True, slots=True)
class Running:
    """How MNN shall run the models."""

    threads: Threads = None
    draft_threads: DraftThreads = None
    backend: Backend = None
    memory: Memory = None
    precision: Precision = None
    dynamic_option: DynamicOption = None
    force: Force = False


@dataclass(frozen=True, slots=True)
class Choosing:
    """How each token of an answer is chosen."""

    temperature: Temperature = 0.0
    top_p: TopP = 1.0
    top_k: TopK = 0
    min_p: MinP = 0.0
    repetition_penalty: RepetitionPenalty = 1.0
    presence_penalty: PresencePenalty = 0.0
    seed: Seed = None

    def sampling(self) -> Sampling:
        """The same, as the engine takes it.

        Raises:
            InvalidRequest: a value is out of range.
        """
        from tokforge_engine import Sampling

        return Sampling(**{field.name: getattr(self, field.name) for field in fields(self)})


def takes_groups(command: Callable[..., _T]) -> Callable[..., _T]:
    """Show typer the options of each group among the parameters of `command` as its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _options_of(groups[parameter.name])
        else:
            parameters.append(
                parameter.replace(
                    annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY
                )
            )

    @functools.wraps(command)
    def spread(**values: Any) -> _T:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **made)

    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return spread


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
