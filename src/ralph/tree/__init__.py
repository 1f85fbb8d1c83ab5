"""What differs on disk: snapshots of a working tree, and what changed between two of them."""
