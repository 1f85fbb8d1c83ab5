"""What one needs to try ralph without any agent: the demo agent, and the small project it works on."""
