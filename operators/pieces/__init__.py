"""Programs in physical pieces: operators as the paper's hardware description builds them."""
