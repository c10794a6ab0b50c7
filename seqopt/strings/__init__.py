"""What strings are, before they are encoded: their kinds, when two writings are one string, and the genetic codes."""
