"""Paper 0's experiments (section 6), and windows against other engines.

snort.py makes the stream and the query sets; counts.py has the answers, job.py the jobs for
`fig7-communication` (communication.py) and `fig8-computation` (computation.py); sides.py shows them
beside the paper's. `windows-peers` is peers.py, with its queries in sliding.py.
"""
