"""What happened, for people: text tables, plots, one HTML page."""
