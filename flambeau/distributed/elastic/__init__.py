"""What programs that a launcher starts import."""
