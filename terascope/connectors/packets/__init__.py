"""Packet captures as a source: pcap and pcapng, plain or gzip, decoded straight into Arrow columns.

In: capture files. Out: splits, and batches of the packet fields in `fields`.

Read `connector` first; then, in data order, `memory` (bytes), `scan` with `pcap` and `pcapng`
(records), `planning` (splits), `link` (where IP starts), `regular` (what kind of packet it is),
`network` (its fields), `columns` (Arrow).
"""
