"""What a repository brings that needs approval, and what its user has approved."""
