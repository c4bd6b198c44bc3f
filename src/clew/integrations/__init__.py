"""Retrievers for LangChain, LlamaIndex and Haystack over a knowledge base."""
