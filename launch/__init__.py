"""Environments, and rounds planned and run in them. Standard library and ``shared`` only."""

from shared.command_start import begin_command

begin_command()
