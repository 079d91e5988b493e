"""Options that more than one command takes, each defined once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from tokforge_models.bundle import MAX_DYNAMIC_OPTION
from tokforge_models.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document on stdout.")]
Layers = Annotated[
    list[Path],
    typer.Option(
        "--registry",
        metavar="FILE",
        help="A registry file laid over the built-in one; may be given again.",
        default_factory=list,
        show_default=False,
    ),
]
Target = Annotated[
    str, typer.Argument(metavar="TARGET", help="Id, alias, repository, or a bundle's directory.")
]
Ids = Annotated[list[str], typer.Argument(metavar="ID", help="Bundle ids or aliases.")]
OptionalIds = Annotated[
    list[str],
    typer.Argument(
        metavar="ID",
        help="Bundle ids or aliases; all that are installed when none is named.",
        default_factory=list,
        show_default=False,
    ),
]
Draft = Annotated[
    str,
    typer.Option(
        "--draft",
        metavar="auto|none|lookup|ID",
        help="Who guesses: what the registry pairs, nobody, the context alone, or the draft "
        "you name.",
    ),
]
DraftLength = Annotated[
    str | None,
    typer.Option(
        "-d",
        "--draft-length",
        metavar="N",
        help="Tokens guessed a round, or auto, which measures.",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, max=64, help="CPU threads of both models.")
]
DraftThreads = Annotated[
    int | None,
    typer.Option("--draft-threads", min=1, max=64, help="CPU threads of the draft alone."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Load it although memory seems too small for it.")
]
Backend = Annotated[
    str | None, typer.Option("--backend", metavar="NAME", help="MNN backend, e.g. cpu or opencl.")
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="low|normal|high", help="MNN memory mode of both models."),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="low|normal|high", help="MNN precision of both models."),
]
DynamicOption = Annotated[
    int | None,
    typer.Option(
        "--dynamic-option",
        min=0,
        max=MAX_DYNAMIC_OPTION,
        help="MNN's variant of rounding activations, of both models.",
    ),
]
Temperature = Annotated[
    float,
    typer.Option("--temperature", metavar="T", help="0 takes the most likely token each time."),
]
TopP = Annotated[
    float, typer.Option("--top-p", metavar="P", help="Draw from the likeliest with this share.")
]
TopK = Annotated[
    int, typer.Option("--top-k", metavar="K", help="Draw from the K likeliest; 0 means all.")
]
MinP = Annotated[
    float,
    typer.Option("--min-p", metavar="P", help="Draw from those at least P times the likeliest."),
]
RepetitionPenalty = Annotated[
    float,
    typer.Option("--repetition-penalty", metavar="X", help="Over 1: what was said is less likely."),
]
PresencePenalty = Annotated[
    float,
    typer.Option(
        "--presence-penalty", metavar="X", help="Over 0: what was answered is less likely."
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="The same seed draws the same text.")
]
Thinking = Annotated[
    bool | None,
    typer.Option(
        "--think/--no-think",
        "--thinking/--no-thinking",
        help="Whether the model may think before it answers, where its template knows of it.",
        show_default=False,
    ),
]
NumericsMode = Annotated[
    Literal["fast", "exact", "reference"],
    typer.Option(
        "--numerics",
        help="exact: paired text is plain text to the bit, at a cost; reference: activations are "
        "not rounded, at a higher cost.",
    ),
]
DeviceFile = Annotated[
    Path | None,
    typer.Option("--device", metavar="FILE", help="Device facts from a JSON or YAML file."),
]
PlatformName = Annotated[
    str | None,
    typer.Option("--platform", metavar="NAME", help="android, ios, linux, macos or windows."),
]
Chip = Annotated[str | None, typer.Option("--chip", metavar="NAME", help="SoC, e.g. SM8850.")]
RamGb = Annotated[
    float | None, typer.Option("--ram-gb", min=0.0, help="Memory in GiB, as the system reports it.")
]
Endpoint = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Ask this hub instead of the usual one (HF_ENDPOINT)."),
]
Connections = Annotated[
    int, typer.Option(min=1, max=32, help="Ranges of one file that are fetched at once.")
]
LimitRate = Annotated[
    str | None,
    typer.Option(metavar="RATE", help="Bytes a second, all together, e.g. 500K or 2M."),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Open no socket; say what is missing, if anything is.")
]
_RATE = re.compile(r"([0-9]{1,12})([KMG]?)", re.IGNORECASE)
_LEAST_RATE = 1024


def bytes_a_second(text: str | None) -> int | None:
    """The rate that a person wrote; K, M and G are powers of 1,000.

    Raises:
        UsageError: it is none, or so small that nothing would ever end.

    >>> bytes_a_second("2M")
    2000000
    """
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    rate = int(found[1]) * 1000 ** " KMG".index(found[2].upper() or " ") if found else 0
    if rate < _LEAST_RATE:
        raise UsageError(
            f"--limit-rate {text[:40]} cannot be", expected="at least 1024, e.g. 500K or 2M"
        )
    return rate
