"""The side that runs the real reference DreamerV3 (danijar/dreamerv3) from its checkout."""

from shared.variables import leave_users_shell

leave_users_shell()
