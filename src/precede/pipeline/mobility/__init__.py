"""From files of mobility to segments and contacts."""
