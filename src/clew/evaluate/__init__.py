"""Evaluation: run recipes on questions with gold answers, score them and compare them."""
