"""The commands of local models: one module each, with a `command` or an `app`."""
