"""Other people's conventions: their files work here unchanged. `found` says which one a directory follows."""
