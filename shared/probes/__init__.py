"""What diagnose and the sides' probes agree on."""
