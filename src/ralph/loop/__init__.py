"""The loop and its policy: runs iterations, decides whether the work is done, and what comes next."""
