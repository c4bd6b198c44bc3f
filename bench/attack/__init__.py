"""Attack campaigns: kills, histories, damaged files, hostile input, failing models and disks."""
