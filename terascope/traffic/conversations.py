"""Flows become packets: handshakes, data with advancing numbers, losses sent again, and farewells.

In: FLOW records. Out: PACKET records, flow after flow (not yet in order of time). Compiled; each
flow draws from its own seed, so a flow is the same whichever chunk of time it falls in.
The tap stands between client and server: an answer of the server is seen `server_delay` after what
caused it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import compiled, inlined
from terascope.traffic import flows as kinds
from terascope.traffic import payloads as contents
from terascope.traffic.randomness import Array, below, draw, signed, uniform

PACKET: Final = np.dtype(
    [
        ("time", "i8"),
        ("src", "u4"),
        ("dst", "u4"),
        ("seq", "u4"),
        ("ack", "u4"),
        ("salt", "u4"),  # which variant of the content, and numbers within it
        ("sport", "u2"),  # ICMP: identifier
        ("dport", "u2"),  # ICMP: sequence
        ("window", "u2"),
        ("ident", "u2"),
        ("payload", "u2"),
        ("version", "u1"),
        ("protocol", "u1"),
        ("flags", "u1"),  # ICMP: type
        ("ttl", "u1"),
        ("tos", "u1"),
        ("content", "u1"),
        ("link", "u1"),
    ],
    align=True,
)

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

_MASK: Final = 0xFFFFFFFF
_LARGEST_BURST: Final = 512
_SECOND: Final = 1_000_000_000
_RESPONSE_HEAD: Final = int(contents.PAYLOADS.spans[contents.RESPONSE, 1])


def expand(flows: Array, retransmission_rate: float) -> Array:
    """All packets of the flows."""
    room = int((2 * flows["size"].astype(np.int64) + 24).sum())
    packets = np.zeros(room, dtype=PACKET)
    lengths = np.ascontiguousarray(contents.PAYLOADS.spans[:, 1])
    return packets[: _expand(flows, packets, retransmission_rate, lengths)]


@compiled
def _expand(flows: Array, out: Array, loss: float, lengths: Array) -> int:
    state = np.zeros(1, dtype=np.uint64)
    used = 0
    for index in range(len(flows)):
        flow = flows[index]
        state[0] = flow.seed
        behaviour = flow.behaviour
        begin = used
        if behaviour == kinds.DNS:
            used = _resolve(out, used, flow, state, lengths)
        elif behaviour == kinds.STREAM:
            used = _stream(out, used, flow, state)
        elif behaviour == kinds.PING:
            used = _ping(out, used, flow, state)
        elif behaviour == kinds.REFLECTED:
            used = _reflect(out, used, flow, state, lengths)
        elif behaviour == kinds.COMPLETE or behaviour == kinds.RESET:
            used = _converse(out, used, flow, state, loss, lengths)
        else:
            used = _knock(out, used, flow, state)
        _address(out, begin, used, flow)
    return used


@inlined
def _emit(
    out: Array,
    used: int,
    from_client: bool,
    time: int,
    flags: int,
    seq: int,
    ack: int,
    payload: int = 0,
    content: int = contents.NOTHING,
    salt: int = 0,
) -> int:
    """Note down what changes from packet to packet; `_address` adds the rest."""
    packet = out[used]
    packet.time = time
    packet.seq = seq & _MASK
    packet.ack = ack & _MASK
    packet.salt = salt & _MASK
    packet.flags = flags
    packet.payload = payload
    packet.content = content
    packet.ttl = from_client
    return used + 1


@inlined
def _address(out: Array, begin: int, end: int, flow: Any) -> None:
    """Complete packets of a flow; those with a ttl so far come from the client."""
    for index in range(begin, end):
        packet = out[index]
        packet.version = flow.version
        packet.protocol = flow.protocol
        packet.tos = flow.tos
        packet.link = flow.link
        # Identification and window need no draw of their own: plausible from what is there.
        packet.ident = (flow.start // 1000 + index * 7) & 0xFFFF
        if packet.ttl:
            packet.src = flow.client
            packet.dst = flow.server
            packet.sport = flow.client_port
            packet.dport = flow.server_port
            packet.ttl = flow.client_ttl
            packet.window = 502 + (flow.client_port & 0x1F)
        else:
            packet.src = flow.server
            packet.dst = flow.client
            packet.sport = flow.server_port
            packet.dport = flow.client_port
            packet.ttl = flow.server_ttl
            packet.window = 1024 - (flow.client_port & 0xFF)
        if flow.behaviour == kinds.PING:
            packet.sport = flow.client_port
            packet.dport = ((index - begin) // 2) & 0xFFFF
            packet.window = 0
        elif packet.flags & SYN:
            packet.window = 64240
        elif packet.flags & RST:
            packet.window = 0


@inlined
def _first_number(state: Array) -> int:
    """An initial sequence number; never the last one, so that adding 1 needs no wrap."""
    return signed(uniform(state) * 4294967295.0)


@inlined
def _knock(out: Array, used: int, flow: Any, state: Array) -> int:
    """A SYN that does not lead to a conversation."""
    mine = _first_number(state)
    used = _emit(out, used, True, flow.start, SYN, mine, 0)
    answered = flow.start + flow.server_delay
    if flow.behaviour == kinds.REFUSED:
        used = _emit(out, used, False, answered, RST | ACK, 0, mine + 1)
    elif flow.behaviour == kinds.PROBED:
        theirs = _first_number(state)
        used = _emit(out, used, False, answered, SYN | ACK, theirs, mine + 1)
        closed = answered + flow.client_delay
        used = _emit(out, used, True, closed, RST, mine + 1, 0)
    elif flow.behaviour == kinds.UNANSWERED:
        wait = _SECOND
        time = flow.start
        for _again in range(below(state, 4)):  # tries again after 1, 2, 4 seconds
            time += wait
            wait *= 2
            used = _emit(out, used, True, time, SYN, mine, 0)
    return used


@inlined
def _resolve(out: Array, used: int, flow: Any, state: Array, lengths: Array) -> int:
    """DNS questions from one port, each with its answer."""
    time = flow.start
    for _question in range(max(1, flow.size // 2)):
        # Low byte: the name; the next two: the query's id.
        salt = signed(draw(state) & np.uint64(0xFFFFFF))
        name = salt & (contents.VARIANTS - 1)
        query = 12 + lengths[contents.NAME + name] + 4
        answer = query + contents.ADDRESS_RECORD * (1 + (name & 3))
        used = _emit(out, used, True, time, 0, 0, 0, query, contents.DNS_QUERY, salt)
        used = _emit(
            out, used, False, time + flow.server_delay, 0, 0, 0, answer, contents.DNS_ANSWER, salt
        )
        time += flow.server_delay + signed(-np.log(1.0 - uniform(state)) * 5e7)
    return used


@inlined
def _reflect(out: Array, used: int, flow: Any, state: Array, lengths: Array) -> int:
    """Large DNS answers to questions the receiver never asked."""
    salt = signed(draw(state) & np.uint64(0xFFFFFF))
    time = flow.start
    for _answer in range(flow.size):
        records = 4 + (salt & 1)
        size = (
            12
            + lengths[contents.NAME + (salt & (contents.VARIANTS - 1))]
            + 4
            + contents.TXT_RECORD * records
        )
        used = _emit(out, used, False, time, 0, 0, 0, size, contents.DNS_AMPLIFIED, salt)
        time += flow.spacing
        salt = (salt + 256) & 0xFFFFFF
    return used


@inlined
def _stream(out: Array, used: int, flow: Any, state: Array) -> int:
    """A media-like stream: packets at an even pace, large ones from the server."""
    pace = min(20_000_000, 4 * _SECOND // flow.size)
    time = flow.start
    for number in range(flow.size):
        salt = signed(draw(state) & np.uint64(0xFFFFFFFF))
        from_client = number % 2 == 0
        payload = 160 if from_client else signed(flow.segment)
        used = _emit(out, used, from_client, time, 0, salt, 0, payload, contents.FILLER, salt)
        time += pace - pace // 8 + below(state, pace // 4 + 1)
    return used


@inlined
def _ping(out: Array, used: int, flow: Any, state: Array) -> int:
    ask = 128 if flow.version == 6 else 8
    reply = 129 if flow.version == 6 else 0
    time = flow.start
    for _number in range(max(1, flow.size // 2)):
        salt = signed(draw(state) & np.uint64(0xFFFFFFFF))
        for from_client in (True, False):
            seen = time if from_client else time + flow.server_delay
            kind = ask if from_client else reply
            used = _emit(out, used, from_client, seen, kind, salt, 0, 56, contents.FILLER, salt)
        time += flow.server_delay + below(state, 50_000_000)
    return used


@inlined
def _converse(out: Array, used: int, flow: Any, state: Array, loss: float, lengths: Array) -> int:
    """A TCP connection: handshake, exchanges of a request and bulk data, then FIN or RST."""
    mine, theirs = _first_number(state), _first_number(state)
    time = flow.start
    used = _emit(out, used, True, time, SYN, mine, 0)
    if uniform(state) < loss / 4:
        time += _SECOND
        used = _emit(out, used, True, time, SYN, mine, 0)
    mine += 1
    time += flow.server_delay
    used = _emit(out, used, False, time, SYN | ACK, theirs, mine)
    theirs += 1
    time += flow.client_delay
    used = _emit(out, used, True, time, ACK, mine, theirs)

    is_http = flow.server_port == 80 or flow.server_port == 8080
    body = contents.FILLER
    if flow.server_port == 443 or flow.server_port == 993 or flow.server_port == 8443:
        body = contents.TLS_RECORD
    upload = flow.upload != 0
    budget = max(0, flow.size - 6)
    exchanges = 1 + below(state, 1 + min(4, budget // 24)) if budget > 1 else 0
    for _exchange in range(exchanges):
        count = max(1, (budget // exchanges - 1) * 2 // 3)
        last = 200 + below(state, signed(flow.segment) - 199)
        total = (count - 1) * signed(flow.segment) + last
        variant = below(state, contents.VARIANTS)
        content, salt, length = body, 0, 120 + below(state, 400)
        if is_http and upload:
            content, length = contents.HTTP_POST, lengths[contents.POST + variant]
            salt = variant | (min(total, 0xFFFFFF) << 8)
        elif is_http:
            content, salt, length = contents.HTTP_GET, variant, lengths[contents.GET + variant]
        time += flow.spacing
        used = _emit(out, used, True, time, PSH | ACK, mine, theirs, length, content, salt)
        if uniform(state) < loss:
            time += 200_000_000
            used = _emit(out, used, True, time, PSH | ACK, mine, theirs, length, content, salt)
        mine += length
        if upload:
            time += flow.spacing
            used, time, mine = _bulk(
                out, used, flow, state, loss, time, True, mine, theirs, count, last, body, 0
            )
        else:
            time += flow.server_delay
            head = total - _RESPONSE_HEAD if is_http else 0
            used, time, theirs = _bulk(
                out, used, flow, state, loss, time, False, theirs, mine, count, last, body, head
            )
        time += signed(-np.log(1.0 - uniform(state)) * 1.2e8)

    client_closes = uniform(state) < 0.7
    first, second = (mine, theirs) if client_closes else (theirs, mine)
    there = flow.server_delay if client_closes else flow.client_delay
    back = flow.client_delay if client_closes else flow.server_delay
    if flow.behaviour == kinds.RESET:
        return _emit(out, used, client_closes, time, RST | ACK, first, second)
    used = _emit(out, used, client_closes, time, FIN | ACK, first, second)
    time += there
    used = _emit(out, used, not client_closes, time, FIN | ACK, second, first + 1)
    return _emit(out, used, client_closes, time + back, ACK, first + 1, second + 1)


@inlined
def _bulk(
    out: Array,
    used: int,
    flow: Any,
    state: Array,
    loss: float,
    time: int,
    from_client: bool,
    seq: int,
    ack: int,
    count: int,
    last: int,
    body: int,
    head: int,
) -> tuple[int, int, int]:
    """Data packets of one side in growing bursts, acknowledged by the other side.

    With `head` > 0 they open with an HTTP response of that content length.

    A lost packet was seen by the tap but not by its receiver: the receiver repeats its last
    acknowledgement for the rest of the burst, and the packet comes again, with the same number and
    bytes, more than a round trip later.
    """
    to_peer = flow.server_delay if from_client else flow.client_delay
    round_trip = flow.server_delay + flow.client_delay
    lost = np.empty(_LARGEST_BURST, dtype=np.int64)
    sent, burst = 0, 10
    start = seq
    while sent < count:
        now = min(burst, count - sent)
        losses = 0
        received = seq
        for place in range(now):
            number = sent + place
            size = last if number == count - 1 else signed(flow.segment)
            content = contents.HTTP_RESPONSE if head > 0 and number == 0 else body
            flags = PSH | ACK if place == now - 1 else ACK
            used = _emit(out, used, from_client, time, flags, seq, ack, size, content, head)
            seq += size
            if uniform(state) < loss:
                lost[losses] = number
                losses += 1
            elif losses == 0:
                received = seq
            if place % 2 == 1 or (place == now - 1 and losses == 0):
                used = _emit(out, used, not from_client, time + to_peer, ACK, ack, received)
            time += flow.spacing
        # The sender notices a loss well after a round trip: sooner, and analysers take the packet
        # for one out of order, or one that disagrees with what they have already put together.
        time += round_trip + (round_trip // 2 + 25_000_000 if losses else 0)
        for index in range(losses):
            number = lost[index]
            size = last if number == count - 1 else signed(flow.segment)
            content = contents.HTTP_RESPONSE if head > 0 and number == 0 else body
            again = start + number * signed(flow.segment)
            used = _emit(out, used, from_client, time, ACK, again, ack, size, content, head)
            time += flow.spacing
        if losses > 0:
            used = _emit(out, used, not from_client, time + to_peer, ACK, ack, seq)
            time += round_trip
        sent += now
        burst = min(2 * burst, _LARGEST_BURST)
    return used, time, seq
