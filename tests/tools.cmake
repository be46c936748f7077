# Tests of tools.
