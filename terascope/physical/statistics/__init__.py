"""What is known of sources before they are read, from samples; what functions cost here."""
