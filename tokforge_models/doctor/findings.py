"""What is good, worth knowing or broken about a machine, and what to do about it. Pure.

A *problem* is what keeps a command from doing its work: MNN that does not run, a store that cannot
be written or read, a damaged bundle, a registry that is not valid. Everything else that a person
may want to change is a *note*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tokforge_models.bundle import State
from tokforge_models.device import GIB, Device
from tokforge_models.doctor.facts import EXTRAS, Facts, Profile
from tokforge_models.resolution.measurement import expiry

_PYTHONS = ((3, 11), (3, 14))
# The card's pack is a third of this; the smallest chat model of the registry is about as much.
_LITTLE_SPACE = 1_000_000_000
_TRUE = {"1", "ON", "YES", "TRUE"}


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Kind(StrEnum):
    """What a problem will end as, once a command meets it: the kinds of errors."""

    ENGINE = "engine"
    STORAGE = "storage"
    INTEGRITY = "integrity"
    REGISTRY = "registry"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing.

    Attributes:
        subject: what it is about, in a word.
        level: how bad it is.
        text: what was found.
        next: the next command or step; empty where there is none.
        kind: of a problem.
    """

    subject: str
    level: Level
    text: str
    next: str = ""
    kind: Kind | None = None


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Everything, the most fundamental first."""
    return (
        *_python(facts),
        *_mnn(facts),
        *_device(facts),
        *_home(facts),
        *_registry(facts),
        *_bundles(facts),
        *_profiles(facts),
        *_extras(facts),
        *_network(facts),
    )


def standing(profile: Profile, device: Device, mnn: str | None) -> str | None:
    """Why a profile does not count here and now, or None where it does."""
    measured = profile.measurement
    if expired := expiry(measured, mnn):
        return expired
    if not measured.device.is_like(device):
        where = measured.device
        return f"measured on another device: {where.chip or 'unknown chip'}, {where.platform}"
    if profile.target is None:
        return "no installed bundle has the content of its target"
    if measured.draft is not None and profile.draft is None:
        return "no installed bundle has the content of its draft"
    return None


def _python(facts: Facts) -> Iterator[Finding]:
    python = facts.python
    oldest, newest = _PYTHONS
    bits = "64" if python.is_64_bit else "32"
    text = f"{python.version}, {bits} bits"
    if oldest <= python.release <= newest and python.is_64_bit:
        yield Finding("python", Level.OK, text)
    else:
        wanted = f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]} with 64 bits"
        yield Finding("python", Level.NOTE, f"{text}; made for {wanted}")
    yield Finding("tokforge", Level.OK, facts.tokforge)


def _mnn(facts: Facts) -> Iterator[Finding]:
    mnn = facts.mnn
    if mnn.version is None:
        if mnn.has_wheel:
            yield _broken("MNN", "not installed: no model can run", "pip install MNN", Kind.ENGINE)
        else:
            yield Finding(
                "MNN",
                Level.NOTE,
                "not installed: there is no wheel for this system; everything but running works",
            )
        return
    if mnn.fault:
        again = f"pip install --force-reinstall MNN=={mnn.version}"
        yield _broken("MNN", f"{mnn.version} cannot be used: {mnn.fault}", again, Kind.ENGINE)
        return
    yield Finding("MNN", Level.OK, mnn.version)
    by_answer = {
        answer: ", ".join(name for name, told in mnn.backends.items() if told == answer)
        for answer in ("here", "missing", "unknown")
    }
    said = [f"{answer}: {names}" for answer, names in by_answer.items() if names]
    if mnn.backends.get("cpu") == "here":
        yield Finding("backends", Level.OK, "; ".join(said))
    else:
        text = f"MNN does not compute on the CPU ({'; '.join(said)})"
        yield _broken("backends", text, "tokforge demo", Kind.ENGINE)


def _device(facts: Facts) -> Iterator[Finding]:
    device = facts.device
    cores = f"{device.cores} core{'s' if device.cores != 1 else ''}" if device.cores else ""
    known = [str(device.platform), device.chip or "chip unknown", cores]
    yield Finding("device", Level.OK, ", ".join(filter(None, known)))
    if device.ram_bytes is None:
        yield Finding("memory", Level.NOTE, "how much there is cannot be told")
        return
    text = f"{device.ram_bytes / GIB:.1f} GiB"
    if sold := device.ram_as_sold:
        text += f", sold as {sold} GB"
    if facts.free_memory is not None:
        text += f"; {facts.free_memory / GIB:.1f} GiB free"
    yield Finding("memory", Level.OK, text)


def _home(facts: Facts) -> Iterator[Finding]:
    home = facts.home
    if home.write_fault:
        yield _broken(
            "home",
            f"{home.path} cannot be written: {home.write_fault}",
            "allow this user to write there, or set TOKFORGE_HOME to another folder",
            Kind.STORAGE,
        )
    else:
        yield Finding("home", Level.OK, f"{home.path}{'' if home.exists else ' (not made yet)'}")
    if home.is_open:
        yield Finding(
            "home", Level.NOTE, "every user of this machine may write there",
            f"chmod o-w {home.path}",
        )  # fmt: skip
    if home.free_bytes is not None:
        text = f"{home.free_bytes / 1e9:.1f} GB free"
        if home.free_bytes < _LITTLE_SPACE:
            little = f"{text}: too little for most models"
            yield Finding("disk", Level.NOTE, little, "tokforge prune")
        else:
            yield Finding("disk", Level.OK, text)
    if home.unreadable:
        yield _broken(
            "home",
            f"cannot be read: {', '.join(map(str, home.unreadable))}",
            "allow this user to read what is there",
            Kind.STORAGE,
        )
    for fault in facts.store_faults:
        yield _broken("store", fault, "tokforge verify --full", Kind.INTEGRITY)


def _registry(facts: Facts) -> Iterator[Finding]:
    for path in facts.layers:
        faults = [fault for fault in facts.registry_problems if fault.file == str(path)]
        if not faults:
            yield Finding("registry", Level.OK, str(path))
            continue
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        yield _broken(
            "registry", f"{faults[0]}{more}", f"tokforge registry lint {path}", Kind.REGISTRY
        )


def _bundles(facts: Facts) -> Iterator[Finding]:
    if not facts.bundles:
        yield Finding("bundles", Level.OK, "none yet", "tokforge demo")
    for bundle in facts.bundles:
        problems = f": {'; '.join(bundle.problems)}" if bundle.problems else ""
        if bundle.state is State.DAMAGED:
            yield _broken(
                bundle.id,
                f"damaged{problems}",
                f"tokforge verify --repair {bundle.id}",
                Kind.INTEGRITY,
            )
        elif bundle.state is State.PARTIAL:
            yield Finding(
                bundle.id,
                Level.NOTE,
                f"partial: {bundle.partial_bytes / 1e6:.1f} MB of it are here{problems}",
                f"tokforge pull {bundle.id} goes on, tokforge prune --partials removes them",
            )
        else:
            level = Level.NOTE if problems else Level.OK
            text = f"ready, {bundle.bytes / 1e6:.1f} MB{problems}"
            yield Finding(
                bundle.id, level, text, f"tokforge verify {bundle.id}" if problems else ""
            )
            if bundle.partial_bytes:
                yield Finding(
                    bundle.id,
                    Level.NOTE,
                    f"{bundle.partial_bytes / 1e6:.1f} MB are left of what was not finished",
                    "tokforge prune --partials",
                )


def _profiles(facts: Facts) -> Iterator[Finding]:
    for profile in facts.profiles:
        measured = profile.measurement
        text = f"{_told(profile)}, by {measured.by} on {measured.measured_at:%Y-%m-%d}"
        why = standing(profile, facts.device, facts.mnn.version)
        if why is None:
            yield Finding("profile", Level.OK, text)
            continue
        bundle = profile.target
        unless = f"remove {profile.path}, unless its target is a folder of yours"
        remedy = f"tokforge bench {bundle} --save" if bundle else unless
        yield Finding("profile", Level.NOTE, f"{text}: does not count, {why}", remedy)
    for path, fault in facts.faulty_profiles:
        yield Finding("profile", Level.NOTE, f"left out: {fault}", f"remove {path}")


def _told(profile: Profile) -> str:
    measured = profile.measurement
    target = profile.target or f"a target ({measured.target[:8]})"
    plain = f"{measured.plain:.1f} tokens a second"
    with_drafts = f"{measured.ratio:.2f} times ({measured.paired:.1f}"
    if measured.draft is None:
        lookup = f", {with_drafts}) with drafts from the context" if measured.lookup else ""
        return f"{target} alone: {plain}{lookup}"
    draft = profile.draft or f"a draft ({measured.draft[:8]})"
    return f"{target} with {draft}: {with_drafts} tokens a second, plain {measured.plain:.1f})"


def _extras(facts: Facts) -> Iterator[Finding]:
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if name not in facts.packages]
        if not missing:
            listed = ", ".join(f"{name} {facts.packages[name]}" for name in packages)
            yield Finding(f"[{extra}]", Level.OK, listed)
            continue
        without = dict.fromkeys(packages[name] for name in missing)
        yield Finding(
            f"[{extra}]",
            Level.NOTE,
            f"not installed: {', '.join(missing)}; without, there is no {' and no '.join(without)}",
            f"pip install 'tokforge-models[{extra}]'",
        )


def _network(facts: Facts) -> Iterator[Finding]:
    for name, value in facts.network.items():
        text = f"{name}: {value}"
        if name == "HF_HUB_OFFLINE" and value.upper() in _TRUE:
            yield Finding("network", Level.NOTE, f"{text}: Hugging Face is not asked",
                          "unset HF_HUB_OFFLINE")  # fmt: skip
        elif name.endswith("_ENDPOINT") and not value.startswith("https://"):
            yield Finding("network", Level.NOTE, f"{text}: not an encrypted address",
                          f"set {name} to https://HOST, or unset it")  # fmt: skip
        else:
            yield Finding("network", Level.OK, text)


def _broken(subject: str, text: str, remedy: str, kind: Kind) -> Finding:
    return Finding(subject, Level.PROBLEM, text, remedy, kind)
