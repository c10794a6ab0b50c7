"""The ``seqopt`` command. Thin: every command calls the library, and errors become one readable message."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType

from seqopt.utils.interruptions import interrupted

HINTS = {"--gc": "--gc takes two fractions with a blank between them, the lowest and the highest: --gc 0.4 0.6"}
"""What to write, where the parser of the command line only says what is wrong with an option."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0: done. 1: an unexpected error. 2: input that cannot be used. 130: interrupted by Ctrl-C.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    debug = "--debug" in arguments
    import typer

    if debug:
        logging.getLogger("seqopt.tracebacks").setLevel(logging.DEBUG)
    from seqopt.cli.app import command
    from seqopt.errors import SeqoptError

    # A terminated run ends like an interrupted one: everything is on disk, and it says how to continue.
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = command()(args=arguments, prog_name="seqopt", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except typer.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except SeqoptError as error:
        if debug:
            raise
        _complain(str(error))
        return 2
    except Exception as error:
        if interrupted(error) and not debug:
            _complain(f"interrupted; while it stopped, {type(error).__name__}: {error}")
            return 130
        # Typer's usage errors have no public base class that all its versions share.
        show, status = getattr(error, "show", None), getattr(error, "exit_code", None)
        if callable(show) and isinstance(status, int):
            show()
            formatted = getattr(error, "format_message", None)
            said = str(formatted() if callable(formatted) else error)
            for option, hint in HINTS.items():
                if f"'{option}'" in said:
                    _complain(hint)
            return status
        if debug:
            raise
        _complain(f"unexpected {type(error).__name__}: {error}\nRun the command again with --debug to see where.")
        return 1
    finally:
        signal.signal(signal.SIGTERM, previous)


def _complain(message: str) -> None:
    # Plain text: a message may hold brackets ([nH]) that a markup renderer would swallow.
    print(f"seqopt: {message}", file=sys.stderr)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def run() -> None:
    """Entry point of the installed ``seqopt`` command."""
    sys.exit(main())
