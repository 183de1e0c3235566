"""The verbs of the command line, one module each: add_arguments(parser) and run(args) -> exit code."""
