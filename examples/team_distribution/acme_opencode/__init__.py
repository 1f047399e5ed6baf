"""How the team at Acme works with coding agents: one module, one plugin."""
