"""Pages on this machine's loopback on which people answer the questions that judges are asked."""
