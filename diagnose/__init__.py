"""Instruments that find where two arms part; each side's probe lives in that side."""

from shared.command_start import begin_command

begin_command()
