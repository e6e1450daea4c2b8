"""Instruments that find where two arms part; each side's probe lives in that side."""
