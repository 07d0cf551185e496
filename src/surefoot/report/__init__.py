"""What a person looks at: tables, figures, one page."""
