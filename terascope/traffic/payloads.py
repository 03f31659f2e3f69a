"""The payloads of packets: HTTP requests, DNS names and filler, as bytes compiled code copies from.

In: nothing but constants. Out: `PAYLOADS`, the same in every run. Filler comes with running sums,
so that the checksum of any even-aligned piece of it is one subtraction.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from terascope.traffic.randomness import Array, generator

(
    NOTHING, FILLER, TLS_RECORD, HTTP_GET, HTTP_POST, HTTP_RESPONSE, DNS_QUERY, DNS_ANSWER,
    DNS_AMPLIFIED,
) = range(9)  # fmt: skip
"""The kinds of payload."""
VARIANTS: Final = 256
"""Different requests and names; a power of two, picked by the low byte of a packet's salt."""
FILLER_SIZE: Final = 1 << 16
LENGTH_DIGITS: Final = "00000000"
TXT_RECORD: Final = 268
ADDRESS_RECORD: Final = 16


GET: Final = 0
POST: Final = GET + VARIANTS
NAME: Final = POST + VARIANTS
RESPONSE: Final = NAME + VARIANTS
OPTIONS: Final = RESPONSE + 1
"""Entries of the table: the first of 256 variants of each, or the only one."""
DIGITS_FROM_END: Final = 12
"""The place of the eight digits of a Content-Length, from the end of an HTTP head."""


class Payloads(NamedTuple):
    """One array of bytes: the filler, then all entries.

    Few arrays, because compiled code counts references to each of them at every call.
    """

    text: Array
    spans: Array
    """Row e: where entry e begins, and its length."""
    filler_sums: Array
    """filler_sums[k] = sum of the first k big-endian 16-bit words of the filler."""


def _host_name(variant: int) -> str:
    words = ("www", "shop", "news", "mail", "img", "api", "static", "video")
    ends = ("example.com", "example.net", "example.org")
    if variant % 16 == 15:  # some clients address a server by number
        return f"198.51.100.{variant}"
    return f"{words[variant % 8]}{variant // 8}.{ends[variant % 3]}"


def _requests(verb: str, middle: str) -> list[bytes]:
    paths = ("index.html", "search?q=stream", "img/logo.png", "api/v1/items", "news/today.html")
    return [
        (
            f"{verb} /{variant % 37}/{paths[variant % 5]} HTTP/1.1\r\n"
            f"Host: {_host_name(variant)}\r\n"
            f"User-Agent: Mozilla/5.0\r\nAccept: */*\r\n{middle}\r\n"
        ).encode()
        for variant in range(VARIANTS)
    ]


def _dns_name(variant: int) -> bytes:
    labels = f"host{variant}.zone{variant % 11}.example.net".encode().split(b".")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _make() -> Payloads:
    length_line = f"Content-Length: {LENGTH_DIGITS}\r\n"
    # An even number of bytes, so that the filler after it can be summed by words.
    response = (
        "HTTP/1.1 200 OK\r\nServer: httpd\r\nContent-Type: application/octet-stream\r\n"
        f"{length_line}\r\n"
    ).encode()
    # Segment size 1460, selective acknowledgement, three of padding, window scale 7.
    options = bytes([2, 4, 5, 0xB4, 4, 2, 1, 1, 1, 3, 3, 7])
    entries = [
        *_requests("GET", ""),
        *_requests("POST", length_line),
        *map(_dns_name, range(VARIANTS)),
        response,
        options,
    ]
    # Letters: random bytes now and then look like a malformed packet of some protocol.
    filler = generator(0, "filler").integers(97, 123, FILLER_SIZE, dtype=np.uint8)
    lengths = np.array([len(entry) for entry in entries])
    begins = FILLER_SIZE + np.cumsum(lengths) - lengths
    words = np.cumsum(filler.view(">u2").astype(np.int64))
    return Payloads(
        np.concatenate([filler, np.frombuffer(b"".join(entries), dtype=np.uint8)]),
        np.stack([begins, lengths], axis=1),
        np.concatenate([np.zeros(1, dtype=np.int64), words]),
    )


PAYLOADS: Final = _make()
