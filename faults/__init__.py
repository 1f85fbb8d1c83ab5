"""The fault suite: injects what can go wrong overnight into the real command, and checks what happens."""
