"""What happens in sessions, and what people do to them. Opens no file, no socket and no database."""
