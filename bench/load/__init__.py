"""Twenty loops at once, each with an agent that prints a megabyte a second: is any late, does any grow?"""
