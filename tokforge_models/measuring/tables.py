"""A bench as tables for people; in text and in Markdown the same ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokforge_models.measuring.comparing import Comparison
from tokforge_models.measuring.plan import PLAIN, Way
from tokforge_models.measuring.report import PairReport, Report, Row
from tokforge_models.measuring.spread import TOLERANCE, median

_NOTHING = "-"
_NOISY = "noisy"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with what is to be said about it.

    Attributes:
        title: what it shows, in a line.
        header: names of the columns.
        rows: as many cells each.
        notes: lines under it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def tables(report: Report) -> tuple[Table, ...]:
    """All tables of a bench."""
    found: list[Table] = []
    for pair in report.pairs:
        if not pair.rows:
            continue
        who = f"{report.target.id} with {pair.draft.id if pair.draft else 'no draft'}"
        found += [_speeds(who, pair), _prompts(who, pair)]
        if any(row.drafted for row in pair.rows):
            found.append(_acceptance(who, pair))
        found.append(_costs(who, pair))
    return tuple(found)


def headline(report: Report) -> tuple[str, ...]:
    """Where, with what and how much was measured, and what was not."""
    device = report.device
    where = [device.chip or str(device.platform)]
    if device.cores:
        where.append(f"{device.cores} core{'s' if device.cores != 1 else ''}")
    lines = [
        f"{report.target.id} on {', '.join(where)}; MNN {report.mnn}, tokforge {report.tokforge}",
        f"{report.measured_at:%Y-%m-%d %H:%M}: {report.repetitions} repetitions, answers of at "
        f"most {report.tokens} tokens",
    ]
    if not report.complete:
        lines.append("interrupted: what follows is of the part that was measured")
    lines += [f"{each.workload}: left out, {each.why}" for each in report.skipped]
    return tuple(lines)


def _speeds(who: str, pair: PairReport) -> Table:
    workloads = pair.workloads
    rows = []
    for way in pair.ways:
        cells = [_speed(pair.row(name, way)) for name in workloads]
        rows.append((way.name, *cells, _share(pair, way), _factor(pair.overall(way))))
    notes = []
    if any(row.noisy for row in pair.rows):
        notes.append(
            f"{_NOISY}: a second run may well find a median that is more than "
            f"{TOLERANCE:.0%} away; more repetitions help, and other programs ended"
        )
    if pair.drift is not None and abs(pair.drift) > TOLERANCE:
        how = "slower" if pair.drift < 0 else "faster"
        notes.append(
            f"the device became {abs(pair.drift):.0%} {how} from the first third of the run to the "
            "last; the ways took turns, so their ratios hold, the tokens a second less so"
        )
    if pair.drift is not None and abs(pair.drift) <= TOLERANCE:
        notes.append(f"first third against last third of the run: {pair.drift:+.1%}")
    if pair.peak_bytes is not None:
        notes.append(f"memory at its peak: {pair.peak_bytes / 1e6:,.0f} MB")
    return Table(
        f"{who}: tokens a second, and times plain",
        ("way", *workloads, "same text", "all"),
        tuple(rows),
        tuple(notes),
    )


def _speed(row: Row | None) -> str:
    if row is None or row.speed is None:
        return _NOTHING
    factor = f" {_factor(row.ratio)}" if row.way != PLAIN and row.ratio else ""
    return f"{_figure(row.speed)}{factor}{' ' + _NOISY if row.noisy else ''}"


def _share(pair: PairReport, way: Way) -> str:
    rows = [row for row in pair.rows if row.way == way]
    return f"{sum(row.same for row in rows)} of {sum(row.of for row in rows)}"


def _prompts(who: str, pair: PairReport) -> Table:
    """Reading a prompt: without a draft in use, and in the way that uses most."""
    last = pair.ways[-1]
    rows = []
    for workload in pair.workloads:
        plain, drafted = pair.row(workload, PLAIN), pair.row(workload, last)
        shown = plain or drafted
        if shown is None:
            continue
        cells = [_figure(median(shown.prefill_speeds)), _milliseconds(plain)]
        if last != PLAIN:
            cells.append(_milliseconds(drafted))
        rows.append((workload, str(shown.prompt_tokens), *cells))
    header = ["workload", "prompt tokens", "prefill tokens a second", "first token after, plain"]
    if last != PLAIN:
        header.append(f"first token after, {last.name}")
    return Table(f"{who}: reading the prompt", tuple(header), tuple(rows))


def _acceptance(who: str, pair: PairReport) -> Table:
    rows = []
    for row in pair.rows:
        if not row.drafted or row.way.d not in {"auto", _longest(pair)}:
            continue
        shares = [
            f"{kept / tried:.0%}" if tried else _NOTHING
            for kept, tried in zip(row.accepted, row.drafted, strict=False)
        ]
        rows.append((row.workload, row.way.name, shares))
    most = max((len(shares) for *_, shares in rows), default=0)
    padded = tuple(
        (workload, way, *shares, *[_NOTHING] * (most - len(shares)))
        for workload, way, shares in rows
    )
    places = tuple(str(place) for place in range(1, most + 1))
    return Table(
        f"{who}: drafted tokens accepted, by place in the draft",
        ("workload", "way", *places),
        padded,
        ("of all that were drafted in that place: a token counts only where those before it did",),
    )


def _longest(pair: PairReport) -> int:
    return max((way.d for way in pair.ways if isinstance(way.d, int)), default=0)


def _costs(who: str, pair: PairReport) -> Table:
    base = next((cost.verify_seconds for cost in pair.costs if cost.d == 0), None)
    rows = tuple(
        (
            str(cost.d),
            f"{cost.verify_seconds * 1e3:.3g} ms",
            _factor(cost.verify_seconds / base if base else None),
            f"{cost.draft_seconds * 1e3:.3g} ms" if cost.d else _NOTHING,
        )
        for cost in pair.costs
    )
    return Table(f"{who}: what a round costs", ("d", "V(d + 1)", "V(d + 1) / V(1)", "D(d)"), rows)


def comparison(found: Comparison) -> Table:
    """Two benches side by side."""
    rows = tuple(
        (
            each.draft or "no draft",
            each.workload,
            each.way.name,
            _figure(each.before),
            _figure(each.after),
            f"{each.change:+.1%}",
            each.verdict,
        )
        for each in found.changes
    )
    notes = [*found.differences]
    if found.missing:
        notes.append(f"{found.missing} rows are in one of the two only")
    return Table(
        "tokens a second, before and after",
        ("draft", "workload", "way", "before", "after", "change", "verdict"),
        rows,
        tuple(notes),
    )


def markdown(table: Table) -> str:
    """A table in GitHub's Markdown, with its title above and its notes below."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    head = [f"**{table.title}**", "", line(table.header), line(["---"] * len(table.header))]
    notes = [f"\n{note}" for note in table.notes]
    return "\n".join([*head, *map(line, table.rows), *notes])


def _milliseconds(row: Row | None) -> str:
    seconds = median(row.first_token_seconds) if row else None
    return f"{seconds * 1e3:.3g} ms" if seconds is not None else _NOTHING


def _factor(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else _NOTHING


def _figure(value: float | None) -> str:
    if not value:
        return _NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
