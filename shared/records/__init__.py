"""What a run leaves on disk: rows, files, layout, launch_info, arrays, digests."""
