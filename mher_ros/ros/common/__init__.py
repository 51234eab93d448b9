"""Shared by the nodes: messages, status, parameters, the command path over topics."""
