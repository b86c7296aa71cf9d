"""The Subnet Administrator, who tells what the Subnet Manager knows (IBTA vol 1, chapter 15)."""
