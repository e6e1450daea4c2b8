"""The Ajax side: runs Ajax's DreamerV3 inside the pinned Ajax environment."""

from shared.variables import leave_users_shell

leave_users_shell()
