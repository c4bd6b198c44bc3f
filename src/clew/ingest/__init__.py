"""Ingestion: file readers, chunkers, and the pipeline that adds documents to a knowledge base."""
