"""The REST API, asked as a program asks it."""
