"""What all tests need of the process that they run in."""

import signal

# Started in the background of a script a process ignores Ctrl-C, and so would those to which tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
