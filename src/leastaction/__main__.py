"""``python -m leastaction``."""

from leastaction.cli import main

if __name__ == "__main__":
    main()
