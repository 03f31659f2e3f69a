"""States of aggregates that need more than a word for a group, of many groups at once."""
