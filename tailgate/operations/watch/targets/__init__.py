"""The places other than webhooks that receive notifications."""
