"""What every folder may import: checks, limits, atomic files, types, schemas and stored state."""
