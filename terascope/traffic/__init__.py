"""Synthetic traffic: realistic packets with known properties, reproducible by seed.

In: a `Profile`. Out: pcap or Parquet files. Reading order: profile, population, flows,
conversations (flows become packets), frames (packets become bytes), trace (packets in order of
time, the writers, and the entry). `flow_records` makes flow records as routers export them.
"""
