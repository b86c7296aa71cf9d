"""The hardware, in Amaranth: link layer, switch, channel adapter, their registers and their trace."""
