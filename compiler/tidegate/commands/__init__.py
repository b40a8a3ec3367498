"""The commands of `tidegate`, one a file; each is named `command` there. They only wire."""
