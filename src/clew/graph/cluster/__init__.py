"""Grouping: k-means, dual-perception communities, Leiden, soft mixtures, and how good they are."""
