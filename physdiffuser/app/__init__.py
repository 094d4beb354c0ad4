"""The page of `physdiffuser app`: from a table to a law in a browser, on this machine alone.

`server.py` opens a port of the loopback interface, `security.py` refuses what does not come from the page,
`routes.py` says what can be asked, and `jobs.py` runs each search as a process of the command line with a run
folder of its own, so that nothing is lost with the page.
"""
