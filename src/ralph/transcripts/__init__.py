"""Raw lines to canonical events: `events` (the model), `base` (the protocol), a module for each format."""
