"""Who belongs to the group, as one member sees it: keys, the roster in force, how frames are admitted."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from precede.core.errors import BadInput, StoreFailed
from precede.core.identity import NodeId
from precede.core.node import Node
from precede.runtime.codec import Codec
from precede.runtime.driver import Driver
from precede.runtime.evidence.files import KeptEvidence
from precede.runtime.evidence.history import Contradiction
from precede.runtime.evidence.proofs import Equivocation
from precede.runtime.links.admission import Admission, OpenAdmission, SealedAdmission
from precede.runtime.links.agreement import Agreement
from precede.runtime.links.authorship import Authors, Retired
from precede.runtime.links.inspection import Inspection
from precede.runtime.links.introductions import Directory, Identity
from precede.runtime.links.neighbours import Links
from precede.runtime.names import MemberNames, group_key, pseudonym
from precede.runtime.no_store import NoStore, new_incarnation
from precede.runtime.notices import Notices
from precede.runtime.rosters import RetiredKey, SignedRoster
from precede.runtime.rows import KeptRows, SegmentWriter
from precede.runtime.settings import MemberSettings
from precede.runtime.store import Store
from precede.runtime.store_upgrade import upgrade

_EPOCH: Final = "roster epoch"
_LATER: Final = 4_096
_LAST_INCARNATION: Final = (1 << 15) - 1


class Membership:
    """The keys and rosters of one member. `authors` is None in a group without a roster."""

    def __init__(
        self, group: str, name: str, names: MemberNames, settings: MemberSettings, notices: Notices
    ) -> None:
        self.authors: Authors | None = None
        self._group = group
        self._name = name
        self._names = names
        self._settings = settings
        self._notices = notices
        self._roster = dict(settings.roster or {})
        self._epoch = settings.epoch
        self._admissions: list[Admission] = []
        self._evidence: KeptEvidence | None = None
        if settings.identity is not None and settings.roster is not None:
            keys = {names.id_of(member): public for member, public in settings.roster.items()}
            self.authors = Authors(group, names.id_of(name), settings.identity, keys)
            self.authors.replace(keys, self._retired(settings.retired))

    def _retired(self, keys: tuple[RetiredKey, ...]) -> list[Retired]:
        return [Retired(self._names.id_of(key.name), key.public, key.incarnation, key.number) for key in keys]

    def open_store(self) -> Store | NoStore:
        """Open the member's store and bind it to the member. Raise BadInput for an outdated roster."""
        settings = self._settings
        if settings.store is None:
            return NoStore(settings.incarnation, settings.retention)
        first = self._new_incarnation() if settings.renewable else max(settings.enrolled, self._after_retired())
        store = Store(
            settings.store,
            synchronous=settings.synchronous,
            incarnation=first,
            retention=settings.retention,
        )
        store.claim({"group": self._group, "member": self._name, "protocol": settings.protocol})
        latest = store.remembered(_EPOCH, 0)
        if settings.admin is not None and self._epoch < latest:
            store.abandon()
            raise BadInput(f"roster: epoch {self._epoch} is older than epoch {latest}, which was used before")
        store.remember(_EPOCH, max(latest, self._epoch))
        store.commit()
        if store.is_copy:
            cause = "the store was copied, moved or restored from a backup"
            if settings.renewable:
                store.begin_incarnation(self._new_incarnation(store.incarnation()))
                self._notices.give("restored_store", f"{cause}: this member continues as a new incarnation")
            elif settings.after_copy != "nothing":
                is_empty = settings.after_copy == "empty"
                store.begin_incarnation(self._later_incarnation(store), empty=is_empty)
                text = f"{cause}: this member continues as a new incarnation"
                missed = ", which gets the messages that are sent to it from now on" if is_empty else ""
                self._notices.give("restored_store", text + missed)
            else:
                harm = "if a copy runs, or ran after the backup, messages of both are lost"
                self._notices.give("restored_store", f"{cause}: {harm}; begin with a new store")
        return store

    def _after_retired(self) -> int:
        """Return an incarnation after all those whose keys are retired; 0 if there are none."""
        return max([key.incarnation + 1 for key in self._settings.retired if key.name == self._name], default=0)

    def _later_incarnation(self, store: Store) -> int:
        """Draw an incarnation that follows the store's. Copies of one store rarely draw the same one.

        Raise BadInput if there is none left.
        """
        later = store.incarnation() + 1 + secrets.randbelow(_LATER)
        if later > _LAST_INCARNATION:
            store.abandon()
            raise BadInput(f"{store.path}: was restored too often: begin with a new store and another name")
        return later

    def _new_incarnation(self, *taken: int) -> int:
        """Draw an incarnation that this member is not known to have had."""
        earlier = {key.incarnation for key in self._settings.retired if key.name == self._name}
        while (incarnation := new_incarnation()) in earlier or incarnation in taken:
            continue
        return incarnation

    def new_segments(self, run_id: str) -> SegmentWriter | None:
        """Make what writes the event log, if there is one. Raise BadInput if its folder cannot be made."""
        settings = self._settings
        if settings.log is None:
            return None
        name = self.log_name(self._names.id_of(self._name))
        return SegmentWriter(settings.log, run_id, name, settings.segment)

    def new_driver(self, make_node: Callable[[NodeId, int], Node], codec: Codec) -> Driver:
        """Open the store and make the driver of a node that continues from it."""
        settings, me = self._settings, self._names.id_of(self._name)
        store = self.open_store()
        if settings.book is None and isinstance(store, Store):
            upgrade(store, (self._name, *settings.members, *(settings.roster or ())))
        kept = settings.log is not None or settings.keep_rows
        driver = Driver(
            lambda incarnation: make_node(me, incarnation),
            codec,
            store,
            settings.clock,
            KeptRows(self.log_name, settings.log_packets) if kept else None,
            settings.speed,
            settings.wires,
        )
        driver.node_id = me
        driver.transfers = settings.transfers
        driver.inspection = Inspection(me, driver.incarnation, self.authors)
        self._begin_chain(store, driver.fail)
        return driver

    def tell_rollback(self, store: Store | NoStore) -> bool:
        """Warn that others have messages of this member that its store does not know.

        The numbers that it would give are used up. If it can begin a new incarnation, return True: broadcasts
        are refused until its next start, which begins one.
        """
        text = "others have messages of this member that its store does not know: the store was rolled back"
        refused = self._settings.renewable or self._settings.after_copy != "nothing"
        if refused:
            text += "; broadcasts are refused until it is joined again, as a new incarnation"
            store.disown()
        self._notices.give("rolled_back", text, self._name)
        return refused

    def _begin_chain(self, store: Store | NoStore, fail: Callable[[StoreFailed], None]) -> None:
        """Continue the chain of own messages from the store; keep evidence there."""
        if self.authors is None:
            return
        settings, names = self._settings, self._names
        redacted = (lambda name: self.log_name(names.id_of(name))) if settings.redact else None
        evidence = KeptEvidence(self._group, store, settings.log, self._tell, redacted)

        def add(public: bytes, contradiction: Contradiction) -> None:
            try:
                evidence.add(names.name_of(contradiction[1].header.source), public, contradiction)
            except StoreFailed as error:
                fail(error)
            except OSError as error:
                self._notices.give("evidence_unwritten", f"evidence cannot be written beside the log: {error}")

        self._evidence = evidence
        self.authors.continue_chain(store)
        self.authors.on_contradiction = add

    def _tell(self, evidence: Equivocation) -> None:
        cause = "it lies, its key was stolen, or its store was restored from a backup"
        self._notices.give("equivocation", f"{evidence.text}: {cause}", evidence.author)

    def evidence(self) -> list[Equivocation]:
        return [] if self._evidence is None else self._evidence.listed()

    @property
    def has_keys(self) -> bool:
        return bool(self._settings.keys)

    def new_admission(self) -> Admission:
        """Make what decides which frames of a transport are authentic; later keys and rosters reach it too."""
        settings, boot = self._settings, secrets.randbits(63)
        number = self._names.id_of(self._name)
        terms = {"group": self._group, **settings.terms}
        agreement = Agreement(
            self._name, terms, settings.clock, settings.lifetime, self._names.name_of, self._notices.give
        )
        if not settings.keys:
            self._admissions.append(OpenAdmission(number, boot, agreement, self._name, self._names.learn))
            return self._admissions[-1]
        identity = Identity.shared(self._group, self._name)
        if settings.identity is not None:
            identity = Identity(settings.identity)
        own = identity.introduce(self._group, self._name)
        directory = Directory(self._group, own, self._names.id_of, settings.roster, self._names.add)
        admission = SealedAdmission(number, identity, directory, self._group, settings.keys, boot, agreement)
        self._admissions.append(admission)
        return admission

    def log_name(self, node: NodeId) -> str:
        """Return the name of a node in the event log: a pseudonym if names are redacted."""
        name = self._names.name_of(node)
        if not self._settings.redact:
            return name
        secret = (*self._settings.keys, self._group.encode())[0]
        return pseudonym(name, blake2b(secret, digest_size=32).digest())

    def rekey(self, group_secrets: tuple[bytes, ...]) -> None:
        """Replace the group's secrets: the first encrypts from now on, any of them decrypts.

        Raise BadInput if there is none, if one has not 32 bytes, or if the member joined without a key.
        """
        if not self._settings.keys:
            raise BadInput("rekey: this member joined without a key (key=None)")
        if not group_secrets or not all(isinstance(each, bytes) and len(each) == 32 for each in group_secrets):
            raise BadInput("rekey: expected at least one secret of 32 bytes (`precede keys make`)")
        for admission in self._admissions:
            if isinstance(admission, SealedAdmission):
                admission.rekey(tuple(group_key(secret, self._group) for secret in group_secrets))

    def update(self, roster: SignedRoster, links: list[Links], store: Store | NoStore) -> list[str]:
        """Put a newer roster into force: close links to members that it lacks, and refuse their later
        signatures. Return the names of these members.

        The store remembers its epoch. Raise BadInput if the roster is not newer, not signed by the
        administrator, or without this member.
        """
        admin = self._settings.admin
        if admin is None or self.authors is None:
            raise BadInput("roster: this member joined without an administrator (admin=)")
        roster.check(self._group, admin)
        if roster.epoch <= self._epoch:
            raise BadInput(f"roster: epoch {roster.epoch} is not newer than epoch {self._epoch}")
        removed = [name for name in self._roster if name not in roster.members]
        self.follow(roster, store)
        self._names.add(*roster.members)
        for admission, each in zip(self._admissions, links, strict=True):
            if isinstance(admission, SealedAdmission):
                for number in admission.replace_roster(roster.members):
                    each.close(number)
        return removed

    def follow(self, roster: SignedRoster, store: Store | NoStore) -> None:
        """Accept the signatures of a roster that was checked, and remember its epoch."""
        if self.authors is not None:
            keys = {self._names.id_of(name): public for name, public in roster.members.items()}
            self.authors.replace(keys, self._retired(roster.retired))
        store.remember(_EPOCH, roster.epoch)
        store.commit()
        self._epoch, self._roster = roster.epoch, dict(roster.members)
