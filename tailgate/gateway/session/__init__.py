"""The state of one client's session, and what all sessions of a gateway share."""
