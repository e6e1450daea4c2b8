"""Statistics, checks, tables and figures: from the records of a run to a verdict.

A statistic is a pure function of records, a table is a pure function of statistics, and only the
commands (:mod:`analysis.compare`, :mod:`analysis.reproduce`, :mod:`analysis.manifest`) read and
write files.
"""

from shared.command_start import begin_command

begin_command()
