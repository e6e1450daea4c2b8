"""Settings of hypothesis for all tests."""

from hypothesis import settings

# No deadline: the machine may be busy. No database: a test run leaves nothing behind.
settings.register_profile("project", max_examples=60, deadline=None, database=None)
settings.load_profile("project")
