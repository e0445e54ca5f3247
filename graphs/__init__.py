"""The workflows, as LangGraph state machines."""
