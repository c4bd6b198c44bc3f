"""Contract tests and fakes, for our tests and for those who extend Clew."""
