"""What is said about the constants of the answer: fitted value, error, special value, physical constant."""
