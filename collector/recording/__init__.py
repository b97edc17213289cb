"""The recording of one session: typed columns with a ledger and a clock."""
