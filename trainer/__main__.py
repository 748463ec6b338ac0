"""`python -m trainer`: see `commands.py`, which takes a second to load; Ctrl-C counts at once."""

import sys

if __name__ == "__main__":
    try:
        from trainer.commands import main

        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped before it took part.", file=sys.stderr)
        sys.exit(130)  # as shells say of Ctrl-C
