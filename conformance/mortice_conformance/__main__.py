"""`python -m mortice_conformance` is the command `mortice-conformance`, where the folder of commands is not on PATH."""

import sys

from mortice_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
