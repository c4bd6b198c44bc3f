"""From a question to smaller ones, and from their answers to one."""
