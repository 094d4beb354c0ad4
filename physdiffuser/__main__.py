"""`python -m physdiffuser` is the program `physdiffuser`."""

import sys

from physdiffuser.cli import main

if __name__ == "__main__":
    sys.exit(main())
