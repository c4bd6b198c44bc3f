"""File readers: one module per format (text, HTML, PDF, DOCX, records)."""
