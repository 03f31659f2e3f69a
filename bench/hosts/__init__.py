"""Several hosts on one machine, and the experiments of paper 2 section 6 on them.

In: a number of hosts. Out: a Spark standalone cluster in which every host has an address, a network
interface and a folder of its own (network.py, cluster.py); a trace split into the partitions that
the hosts hold (traffic.py); one aggregator that receives the rows of all hosts (aggregator.py); and
the experiments `fig8-9`, `fig10-11`, `fig13-14` and `fig6-10-11` (figures.py).
"""
