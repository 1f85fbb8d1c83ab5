"""Any agent that ralph knows, looking like Claude to a tool that can only drive Claude (`ralph as-claude`)."""
