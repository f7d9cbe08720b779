"""What people are told, and how: errors, places, words, tables."""
