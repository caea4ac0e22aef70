"""Actions on a group: a form, a preview of what would change, and a confirmation.

Everything is asked of the services for the visitor. What was previewed is done, or refused if the
group is another by then.
"""
