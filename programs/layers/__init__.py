"""Parts of networks that several programs share."""
