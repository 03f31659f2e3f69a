"""Synthetic traffic: realistic packets with known properties, reproducible by seed.

In: a `Profile`. Out: pcap or Parquet files. Reading order: profile, population, flows and
scenarios, conversations (flows become packets), stream (packets in order of time), frames (packets
become bytes), writers, trace (the entry). `flow_records` makes flow records as routers export them.
"""
