"""One Markdown file per prompt: text only."""
