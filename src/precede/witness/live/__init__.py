"""The witness while a run goes on."""
