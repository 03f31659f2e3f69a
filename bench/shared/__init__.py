"""What the queries of a set share: trees beside flat plans, and what many queries cost."""
