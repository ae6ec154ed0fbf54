"""``python -m icqf`` is the command ``icqf``."""

from icqf.cli import main

if __name__ == "__main__":
    main()
