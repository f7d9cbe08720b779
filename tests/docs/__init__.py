"""The documentation: its generated pages, its transcripts and the site made of it."""
