"""Who is here now: finding, trusting, loading, scoping and reloading plugins."""
