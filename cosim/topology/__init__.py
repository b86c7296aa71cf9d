"""What a fabric is made of and how it is cabled, read from files and written as text."""
