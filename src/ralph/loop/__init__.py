"""The policy: what an iteration amounted to, whether the work is done, what comes next."""
