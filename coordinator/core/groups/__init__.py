"""Groups of any type: description, deletion, configs, and the topics that are kept here."""
