"""Benchmark suites as data, stated protocols, a judge, and the runner behind `physdiffuser evaluate`.

suites      laws, ranges and units, read from the CSV files in `data/`
sampling    a table of rows drawn from a law, reproducible from a seed
export      the tables as CSV files, for other tools
judge       whether an answer is the law
tasks       one problem with its settings; what is run, and the key under which it is recorded
workers     a process per problem that can be killed
results     one JSON line per problem
runner      tasks to results, on this machine or on a cluster
systems/    what answers: physdiffuser itself, and peers
report/     rates, intervals, curves; Markdown and one HTML page
"""
