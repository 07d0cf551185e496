"""What a run shows to people: tables, figures, HTML pages."""
