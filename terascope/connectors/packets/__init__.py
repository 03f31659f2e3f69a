"""Packet captures as a source: pcap and pcapng, plain or gzip, decoded straight into Arrow columns.

In: capture files. Out: splits, and batches of the packet fields in `fields`.

Read `connector` first; then, in data order, `window` (bytes), `scan` with `pcap` and `pcapng`
(records), `link` and `network` (headers), `columns` and `payload` (Arrow).
"""

from __future__ import annotations

from terascope.connectors.packets.connector import PacketConnector

__all__ = ["PacketConnector"]
