"""Model servers that judge starts, watches and stops."""
