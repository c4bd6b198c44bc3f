"""Trains, exports and measures the span reader."""
