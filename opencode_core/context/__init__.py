"""What the model is told."""
