"""Sessions between members over a network that loses, copies, delays, replays and redirects frames."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from precede.core.identity import NodeId
from precede.runtime.links.admission import OpenAdmission
from precede.runtime.links.group_seal import MOST_SALTS, GroupSeal, derive_keys
from precede.runtime.links.introductions import Directory, Identity
from precede.runtime.links.link_events import Arrived, LinkEvents
from precede.runtime.links.paths import Paths
from precede.runtime.links.sessions import COOKIE, DATA, MESSAGE_1, Sessions
from precede.runtime.names import node_id
from tests.runtime.insider import NO_TERMS

GROUP = "picnic"
KEY = bytes(range(32))


class Member:
    """One member: its sessions, and everything that it was told."""

    def __init__(self, net: Network, name: str, boot: int = 1, keys: tuple[bytes, ...] = (KEY,)) -> None:
        self.name = name
        self.number = node_id(name)
        self.where = f"{name}'s address"
        identity = Identity.shared(GROUP, name)
        self.directory = Directory(GROUP, identity.introduce(GROUP, name), node_id)
        self.ready: list[tuple[NodeId, int]] = []
        self.moved: list[tuple[NodeId, object]] = []
        self.arrived: list[Arrived] = []
        self.sessions = Sessions(
            self.number,
            identity,
            self.directory,
            GROUP,
            keys,
            boot,
            LinkEvents(
                send=lambda frame, where: net.put(self, frame, where),
                on_ready=lambda peer, its_boot, where: self.ready.append((peer, its_boot)),
                on_moved=lambda peer, where: self.moved.append((peer, where)),
                on_alive=lambda peer: None,
                on_stranger=lambda where: None,
                on_mismatch=lambda where: None,
            ),
        )

    def data_from(self, other: Member) -> list[bytes]:
        return [each.data for each in self.arrived if each.sender == other.number]


class Network:
    """Frames in the air with the address they come from; `tamper` may return any frames in place of one."""

    def __init__(self, seed: int = 0, loss: float = 0.0) -> None:
        self.random = Random(seed)
        self.loss = loss
        self.now = 1000.0
        self.members: dict[object, Member] = {}
        self.air: list[tuple[float, bytes, object, object]] = []
        self.log: list[tuple[bytes, object, object]] = []
        self.sent_to: dict[object, int] = {}
        self.tamper: Callable[[bytes, object, object], list[tuple[bytes, object, object]]] | None = None

    def add(self, name: str, boot: int = 1, keys: tuple[bytes, ...] = (KEY,)) -> Member:
        member = Member(self, name, boot, keys)
        for other in self.members.values():
            if other.name != name:
                other.directory.accept(member.directory.own)
                member.directory.accept(other.directory.own)
        self.members[member.where] = member
        return member

    def put(self, sender: Member, frame: bytes, where: object) -> None:
        self.sent_to[where] = self.sent_to.get(where, 0) + len(frame)
        self.log.append((frame, sender.where, where))
        copies = [(frame, sender.where, where)]
        if self.tamper is not None:
            copies = self.tamper(frame, sender.where, where)
        for copy in copies:
            if self.random.random() >= self.loss:
                self.air.append((self.now + self.random.uniform(0.001, 0.01), *copy))

    def inject(self, frame: bytes, source: object, target: object) -> None:
        self.air.append((self.now, frame, source, target))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = round(self.now + 0.01, 2)
            due = sorted(item for item in self.air if item[0] <= self.now)
            self.air = [item for item in self.air if item[0] > self.now]
            for _, frame, source, target in due:
                member = self.members.get(target)
                if member is not None:
                    arrived = member.sessions.frame(frame, source, self.now)
                    if arrived is not None:
                        member.arrived.append(arrived)
            for member in self.members.values():
                member.sessions.tick(self.now)

    def introduce(self, first: Member, second: Member) -> None:
        """Both hear a beacon of the other, which opens a budget for the answer."""
        for one, other in ((first, second), (second, first)):
            one.sessions.paths.heard(other.where, 64)
            one.sessions.meet(other.number, other.sessions.boot, other.where, self.now)

    def say(self, sender: Member, receiver: Member, data: bytes) -> None:
        sealed = sender.sessions.seal_to(receiver.number, data)
        assert sealed is not None
        self.put(sender, *sealed)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_two_members_agree_also_when_frames_are_lost(seed: int, loss: float) -> None:
    net = Network(seed, loss)
    ana, ben = net.add("ana"), net.add("ben")
    net.introduce(ana, ben)
    net.run(0.5)
    if loss:
        for _ in range(20):  # beacons go on
            net.introduce(ana, ben)
            net.run(0.5)
    net.loss = 0.0
    net.run(1.0)
    assert ana.ready == [(ben.number, 1)]
    assert ben.ready == [(ana.number, 1)]
    net.say(ana, ben, b"bread?")
    net.say(ben, ana, b"butter")
    net.run(0.1)
    assert ben.data_from(ana) == [b"bread?"]
    assert ana.data_from(ben) == [b"butter"]


def joined(*names: str, seed: int = 0) -> tuple[Network, list[Member]]:
    net = Network(seed)
    members = [net.add(name) for name in names]
    for place, first in enumerate(members):
        for second in members[place + 1 :]:
            net.introduce(first, second)
    net.run(1.0)
    for member in members:
        assert len(member.ready) == len(members) - 1
    return net, members


def test_a_frame_for_one_member_opens_at_no_other() -> None:
    net, (ana, ben, cat) = joined("ana", "ben", "cat")
    for _ in range(150):
        net.say(ana, cat, b"for cat")
    copies = [frame for frame, source, target in net.log if source == ana.where and target == cat.where]
    net.run(0.1)
    before = len(ben.arrived)
    for frame in copies:
        net.inject(frame, ana.where, ben.where)
    net.run(0.1)
    assert ben.arrived[before:] == []
    for number in range(147):
        net.say(ana, ben, b"%d" % number)
    net.run(0.1)
    assert len(ben.data_from(ana)) == 147


def test_every_frame_replayed_and_reflected_changes_nothing() -> None:
    net, (ana, ben) = joined("ana", "ben")
    net.say(ana, ben, b"once")
    net.run(0.1)
    for frame, source, target in list(net.log):
        for where in (source, target, "mallory's address"):
            net.inject(frame, where, target)
            net.inject(frame, where, source)
    net.run(5.0)
    assert ben.data_from(ana) == [b"once"]
    assert ana.ready == [(ben.number, 1)]
    assert ben.ready == [(ana.number, 1)]
    assert ana.moved == ben.moved == []
    net.say(ana, ben, b"twice")
    net.run(0.1)
    assert ben.data_from(ana) == [b"once", b"twice"]


def test_frames_of_an_earlier_boot_are_refused_after_a_restart() -> None:
    net, (ana, ben) = joined("ana", "ben")
    old = list(net.log)
    ben = net.add("ben", boot=2)
    ben.directory.accept(ana.directory.own)
    for frame, source, target in old:
        if target == ben.where:
            net.inject(frame, source, target)
    net.run(1.0)
    assert ben.ready == []
    net.introduce(ana, ben)
    net.run(1.0)
    assert ana.ready[-1] == (ben.number, 2)
    assert ben.ready == [(ana.number, 1)]


def test_a_late_proof_of_an_earlier_start_does_not_end_the_session_with_the_present_one() -> None:
    net = Network()
    ana, ben = sorted((net.add("ana"), net.add("ben")), key=lambda member: member.number)
    held: list[tuple[bytes, object, object]] = []

    def hold_data(frame: bytes, source: object, target: object) -> list[tuple[bytes, object, object]]:
        kept = source == ana.where and frame[0] == DATA
        held.extend([(frame, source, target)] if kept else [])
        return [] if kept else [(frame, source, target)]

    net.tamper = hold_data
    net.introduce(ana, ben)
    net.run(0.1)
    late = held[0]  # the first start of ana has a session, and ben has not seen a proof of it
    ana = net.add(ana.name, boot=2)
    ana.sessions.paths.heard(ben.where, 64)
    ana.sessions.meet(ben.number, 1, ben.where, net.now)
    net.run(0.1)
    net.tamper = None
    net.inject(*late)
    net.run(2.0)
    assert ben.ready == [(ana.number, 1), (ana.number, 2)]
    net.say(ana, ben, b"bread?")
    net.say(ben, ana, b"butter")
    net.run(0.1)
    assert ben.data_from(ana) == [b"bread?"]
    assert ana.data_from(ben) == [b"butter"]


def test_a_member_moves_only_where_it_proves_to_be() -> None:
    net, (ana, ben) = joined("ana", "ben")
    relay = "mallory's address"
    net.tamper = lambda frame, source, target: [(frame, relay if source == ana.where else source, target)]
    net.say(ana, ben, b"redirected")
    net.run(4.0)
    assert ben.moved == []  # nobody answers at the relay, and ana answers at home
    net.tamper = None
    home, ana.where = ana.where, "ana's garden"
    net.members[ana.where] = net.members.pop(home)
    net.say(ana, ben, b"from the garden")
    net.run(2.0)
    assert ben.moved == [(ana.number, "ana's garden")]


def test_no_more_than_three_times_the_bytes_go_to_a_victim() -> None:
    net = Network()
    ana, ben = net.add("ana"), net.add("ben")
    net.introduce(ana, ben)
    net.run(0.5)
    first = next(frame for frame, _, _ in net.log if frame[0] == MESSAGE_1)
    target = ben if first[:1] and ana.number < ben.number else ana
    for number in range(200):
        net.inject(first[:20] + number.to_bytes(2, "big") + first[22:], "victim", target.where)
        net.inject(first, "victim", target.where)
    net.run(2.0)
    assert net.sent_to.get("victim", 0) <= 3 * 400 * len(first)
    assert net.sent_to.get("victim", 0) == 0


def test_a_flood_of_handshakes_makes_members_show_a_cookie() -> None:
    net = Network(3)
    ana, ben, cat = net.add("ana"), net.add("ben"), net.add("cat")
    small, large = sorted((ana, ben), key=lambda member: member.number)
    stolen = net.add("mal")  # a member whose link key is not the one that its introduction names
    stolen.sessions._identity = Identity(bytes(32))
    for _ in range(30):
        stolen.sessions.paths.prove(large.where)
        stolen.sessions._begin(large.number, 1, large.where, net.now)
    net.run(0.05)
    net.introduce(small, large)
    net.run(0.9)
    assert any(frame[0] == COOKIE for frame, _, _ in net.log)
    assert (large.number, 1) in small.ready
    assert (small.number, 1) in large.ready
    assert cat.ready == []


def test_strangers_and_other_groups_get_no_answer() -> None:
    net = Network()
    ana, mal = net.add("ana"), net.add("mal", keys=(bytes(32),))
    net.introduce(ana, mal)
    net.run(2.0)
    assert ana.ready == mal.ready == []
    assert ana.sessions.dropped["stranger"] + mal.sessions.dropped["stranger"] > 0


def test_a_key_can_be_changed_without_a_pause_and_removed() -> None:
    new = bytes(32)
    net, (ana, ben) = joined("ana", "ben")
    for member in (ana, ben):
        member.sessions.rekey((new, KEY))
    net.say(ana, ben, b"still here")
    net.run(0.1)
    assert ben.data_from(ana) == [b"still here"]
    for member in (ana, ben):
        member.sessions.rekey((new,))
    assert ana.sessions.seal_to(ben.number, b"") is None
    net.introduce(ana, ben)
    net.run(1.0)
    net.say(ana, ben, b"new key")
    net.run(0.1)
    assert ben.data_from(ana) == [b"still here", b"new key"]


def test_frames_to_everybody_open_once_and_change_no_pair() -> None:
    net, (ana, ben) = joined("ana", "ben")
    frame = ana.sessions.seal_to_all(b"beacon")
    assert ben.sessions.frame(frame, ana.where, net.now) == Arrived(None, b"beacon")
    assert ben.sessions.frame(frame, ana.where, net.now) is None
    assert ben.sessions.frame(frame[:-1] + b"x", ana.where, net.now) is None
    assert ana.sessions.frame(frame, ana.where, net.now) is None


@pytest.mark.parametrize("seed", range(10))
def test_any_bytes_are_counted_and_dropped(seed: int) -> None:
    net, (ana, ben) = joined("ana", "ben", seed=seed)
    random = Random(seed)
    frames = [frame for frame, _, target in net.log if target == ben.where]
    net.say(ana, ben, bytes(100))
    frames += [frame for frame, _, _ in net.log if frame[0] == DATA]
    for _ in range(2000):
        frame = bytearray(random.choice(frames))
        for _ in range(random.randint(1, 4)):
            frame[random.randrange(len(frame))] = random.randrange(256)
        ben.sessions.frame(bytes(frame[: random.randint(0, len(frame))]), "anywhere", net.now)
        ben.sessions.frame(bytes(frame), "anywhere", net.now)
    ben.arrived.clear()
    net.say(ana, ben, b"unharmed")
    net.run(1.0)
    assert b"unharmed" in ben.data_from(ana)
    assert ben.moved == []


def test_an_open_link_drops_any_bytes() -> None:
    admission = OpenAdmission(1, 1, NO_TERMS, "", lambda node, name: None)
    heard: list[NodeId] = []
    ignore = LinkEvents(
        lambda frame, where: None,
        lambda peer, boot, where: None,
        lambda peer, where: None,
        heard.append,
        print,
        print,
    )
    admission.connect(ignore)
    random = Random(6)
    for _ in range(5000):
        admission.frame(random.randbytes(random.randint(0, 80)), "anywhere", 0.0)
    assert sum(admission.dropped.values()) + len(heard) == 5000


def test_an_unproven_address_gets_three_times_what_came_from_it_and_no_more() -> None:
    paths = Paths()
    assert not paths.may_send("there", 1)
    paths.heard("there", 100)
    assert paths.may_send("there", 200)
    assert not paths.may_send("there", 101)
    assert paths.may_send("there", 100)
    assert not paths.may_send("there", 1)
    paths.prove("there")
    assert paths.may_send("there", 10_000)


def test_an_open_beacon_of_a_wrong_length_is_counted_once() -> None:
    admission = OpenAdmission(1, 1, NO_TERMS, "ana", lambda node, name: None)
    beacon = OpenAdmission(2, 1, NO_TERMS, "ben", lambda node, name: None).beacon()
    assert admission.beacon_heard(beacon, "anywhere", 0.0) == 2
    assert admission.dropped == {}
    for wrong in (beacon[:24], beacon + bytes(1000)):
        assert admission.beacon_heard(wrong, "anywhere", 0.0) is None
    assert admission.dropped == {"truncated": 2}


def test_remembered_salts_are_bounded() -> None:
    keys = [derive_keys(KEY)]
    ben = GroupSeal(keys)
    for _ in range(MOST_SALTS + 100):
        assert isinstance(ben.open(GroupSeal(keys).seal(b"")), bytes)
    assert len(ben._known) == MOST_SALTS


def test_a_member_that_changes_to_another_key_is_still_understood() -> None:
    old, new = derive_keys(KEY), derive_keys(bytes(32))
    ana, ben = GroupSeal([old, new]), GroupSeal([old, new])
    first = ana.seal(b"old key")
    assert ben.open(first) == b"old key"
    ana.rekey([new, old])
    second = ana.seal(b"new key")
    assert ben.open(second) == b"new key"
    assert [ben.open(first), ben.open(second)] == ["replayed", "replayed"]
    changed = bytearray(ana.seal(b"changed"))
    changed[-1] ^= 1
    assert ben.open(bytes(changed)) == "tampered"
