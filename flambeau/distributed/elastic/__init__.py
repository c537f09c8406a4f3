"""What programs that a launcher starts import; there is no launcher yet."""
