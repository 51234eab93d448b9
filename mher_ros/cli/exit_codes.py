"""With which code a command ends when it does not end well."""

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
