"""Values, in lower case, that switch an option on without a value of its own, and off."""

ON = ("true", "yes", "on", "1")
OFF = ("false", "no", "off", "0")
