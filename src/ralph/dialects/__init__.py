"""Other tools' conventions: a project written for one of them runs unchanged. Start reading at `detect`."""
