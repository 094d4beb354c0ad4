"""What is printed for people: the terminal report, its tables, and the digits of numbers."""
