"""Twenty loops at once, each with an agent that prints a megabyte per second: are deadlines kept, does memory grow?"""
