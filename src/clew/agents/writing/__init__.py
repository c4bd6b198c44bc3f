"""From evidence to sentences that are cited, checked, or refused."""
