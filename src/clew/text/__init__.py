"""Text tools without a model: words, sentences, names, languages, dates, quantities, countries."""
