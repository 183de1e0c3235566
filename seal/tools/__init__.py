"""Tool schemas as parsers need them, and text <-> literal calls. Nothing here executes anything."""
