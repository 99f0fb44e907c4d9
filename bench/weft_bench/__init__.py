"""Measures Weft and its peers side by side: finds them, runs them interleaved, and says what came out."""
