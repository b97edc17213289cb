"""The value in the middle: what one session saw, as typed columns with a ledger and a clock."""
