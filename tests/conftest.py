"""What all tests share."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background ignores interrupts, and so would the programs that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
