"""Pages with sibling procedures, and questions that want one of them, none, or a short answer."""
