"""Clew: agentic GraphRAG over one knowledge base, every sentence cited."""
