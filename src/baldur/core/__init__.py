"""What every folder may import: parameter checks, limits, atomic files, types and stored state."""
