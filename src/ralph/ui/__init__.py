"""What a person sees. Screens know events and nothing else, so a recorded run looks like a live one."""
