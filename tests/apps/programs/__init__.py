"""Real MPI programs from Debian's source packages, and how each is fetched, built, checked and timed."""
