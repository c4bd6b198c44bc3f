"""Clustering: k-means, dual-perception communities, Leiden, RAPTOR, and quality measures."""
