"""What all tests need of the process that they run in."""

import signal

import pytest

import mortice

# Started in the background of a script a process ignores Ctrl-C, and so would those to which tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

mortice.manual_seed(0)  # a process begins at a seed of chance, and some tests draw when they are collected


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Make a test draw the same numbers in every run, whichever ran before it."""
    mortice.manual_seed(0)
