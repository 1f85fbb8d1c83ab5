"""Secrets stay out of what ralph shows and keeps: which strings are secrets, and what stands in their place."""
