"""``python -m seqopt``."""

from seqopt.cli import run

if __name__ == "__main__":  # worker processes import this module under another name
    run()
