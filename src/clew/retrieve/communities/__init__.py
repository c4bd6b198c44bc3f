"""Retrieval along community trees and summary trees."""
