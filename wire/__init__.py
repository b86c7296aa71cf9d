"""InfiniBand wire formats: headers, packets, CRCs, symbols, flow control and codes.

Formats only: no clock, no state, no behaviour. Every offset, width and code of the
standard (IBTA vol 1) is here once, and every other room reads it from here.
"""
