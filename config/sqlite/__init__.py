"""Django's SQLite, in which the threads of a process queue up for the write lock."""
