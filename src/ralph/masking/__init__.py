"""Keeps secrets out of what ralph shows and stores: finding them, and replacing them with a mask."""
