"""Messages: errors, places in users' files, texts, JSON, whole files, and terminals."""
