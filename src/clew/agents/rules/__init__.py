"""Rules for questions and answers: names, sub-questions and answer patterns, by language."""
