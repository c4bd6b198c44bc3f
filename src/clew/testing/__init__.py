"""Contracts and fakes, for our tests and for those who extend Clew."""
