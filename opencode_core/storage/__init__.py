"""What is kept: the log of what happened, and the stores that hold it. Knows no database."""
