"""`python -m precede` is the command `precede`."""

import sys

from precede.cli import main

if __name__ == "__main__":
    sys.exit(main())
