"""What of a repository needs approval, and what its user has approved."""
