"""Files of API keys, as the program makes and reads them."""

import json
import os
import subprocess


def new(hippodrome, name, **more):
    """The secret of a new key, and its entry with `more`."""
    secret, entry = subprocess.run([hippodrome, "key", "new", "--name", name], check=True,
                                   capture_output=True, text=True).stdout.splitlines()
    return secret, {**json.loads(entry), **more}


def write(path, entries):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"keys": entries}, file)
