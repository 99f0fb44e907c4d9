"""What Weft offers to Python beyond MPI: see weft.opi."""
