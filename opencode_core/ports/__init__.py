"""What the outside must offer, as Protocols that name their laws."""
