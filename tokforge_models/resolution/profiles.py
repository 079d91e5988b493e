"""What saved profiles say about one question: whether a draft gains here, whether lookup does.

Pure. A profile counts for the contents that are installed, on a device like this one, with this
version of MNN. One that would count but for its version is never used; it is told, since measuring
again is what helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tokforge_models.bundle import Bundle
from tokforge_models.device import Device
from tokforge_models.resolution.measurement import Measurement, expiry, latest


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles that a resolution may use.

    Attributes:
        measurements: any, of this and other devices.
        device: where the pair will run.
        mnn: the version of MNN that will run it; None where it is not known, and all count.
        contents: content digest of each installed bundle, by id.
    """

    measurements: tuple[Measurement, ...]
    device: Device
    mnn: str | None
    contents: Mapping[str, str]

    def of(self, target: Bundle, draft: Bundle | None) -> Measurement | None:
        """The profile that counts for a pair, or for a target alone."""
        return self._newest(target, draft, self.mnn)

    def no_gain(self, target: Bundle, draft: Bundle) -> str | None:
        """Why nothing shows that the draft gains, or None where a profile does."""
        if profile := self.of(target, draft):
            no_gain = f"{draft.id} is no gain here: {_told(profile)}"
            return self.loss(target, draft) or (None if profile.shows_gain else no_gain)
        why = f"no measurement of {target.id} with {draft.id} on this device"
        if expired := self._expired(target, draft):
            return f"{why} counts: {expired}"
        both = {target.id, draft.id} <= self.contents.keys()
        return why + (f": tokforge bench {target.id} --save makes one" if both else "")

    def loss(self, target: Bundle, draft: Bundle) -> str | None:
        """Why the draft is not worth it, or None where no profile shows a loss."""
        profile = self.of(target, draft)
        if profile is None or not profile.shows_loss:
            return None
        return f"{draft.id} is slower here: {_told(profile)}"

    def notes(self, target: Bundle, draft: Bundle | None) -> tuple[str, ...]:
        """What was measured of those who run, one sentence each."""
        profile = self.of(target, draft)
        if profile is None:
            expired = self._expired(target, draft)
            with_whom = f" with {draft.id}" if draft else ""
            return (f"{target.id}{with_whom} was {expired}",) if expired else ()
        notes = []
        if draft:
            notes.append(f"{draft.id}: {_told(profile)}")
        if profile.lookup is False:
            notes.append(
                "drafts from the context were measured to be no gain here on "
                f"{profile.measured_at:%Y-%m-%d}"
            )
        return tuple(notes)

    def _expired(self, target: Bundle, draft: Bundle | None) -> str | None:
        newest = self._newest(target, draft, None)
        return expiry(newest, self.mnn) if newest else None

    def _newest(self, target: Bundle, draft: Bundle | None, mnn: str | None) -> Measurement | None:
        ours = self.contents.get(target.id)
        theirs = self.contents.get(draft.id) if draft else None
        if ours is None or (draft is not None and theirs is None):
            return None
        return latest(self.measurements, self.device, ours, theirs, mnn)


def _told(profile: Measurement) -> str:
    return (
        f"{profile.paired:.1f} tokens a second with it, {profile.plain:.1f} without "
        f"({profile.ratio:.2f} times), measured here on {profile.measured_at:%Y-%m-%d}"
    )
