"""Shared by all routes: keys, workspaces, label views, uploads, jobs, and how a request gets in."""
