"""Text -> Script, and back."""
